"""How far the jobs of a group are."""

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

_OWN_BAR = "spark.ui.showConsoleProgress"


class RunningTasks:
    """The tasks of the jobs of a group that run now."""

    def __init__(self, context: SparkContext, group: str) -> None:
        self._context = context
        self._group = group

    def beside(self, what: str) -> str | None:
        """What is done, with how many of the tasks have ended. None where Spark shows that itself,
        in the same line of the terminal (`spark.ui.showConsoleProgress`)."""
        try:
            done, all_ = self._count()
            if not all_:
                return what
            shows = str(self._context.getConf().get(_OWN_BAR, "false")).lower() == "true"
        except (Py4JError, PySparkException, AttributeError):
            # The context may have ended.
            return what
        return None if shows else f"{what}, {done} of {all_} tasks"

    def _count(self) -> tuple[int, int]:
        tracker = self._context.statusTracker()
        running = set(tracker.getActiveJobsIds()) & set(tracker.getJobIdsForGroup(self._group))
        done = all_ = 0
        for job in running:
            found = tracker.getJobInfo(job)
            for number in () if found is None else found.stageIds:
                stage = tracker.getStageInfo(number)
                if stage is not None:
                    done += stage.numCompletedTasks
                    all_ += stage.numTasks
        return done, all_
