"""Which application calls: sent with every request, kept in the log and in the history."""

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from tests.client import answers
from tests.client.tables import new_table
from tests.client.transport.loopback import Loopback
from tidegate import connect
from tidegate.lake import Lake
from tidegate.table import Table
from tidegate.wire.tracing import trace_headers

APPLICATION = "application_1763700000000_0042"
HEADER = "x-spark-application-id"


class TestSending:
    def test_a_lake_of_an_application_names_it_in_every_request(self, loopback: Loopback):
        with connect(loopback.url, application_id=APPLICATION) as lake:
            loopback.answer(200, answers.head())
            table = lake.table("main.air.flights")
            loopback.answer(200, answers.head())
            table.head()
        assert [seen.headers[HEADER] for seen in loopback.seen] == [APPLICATION] * 2

    def test_without_one_nothing_is_sent(self, loopback: Loopback, scripted_table: Table):
        loopback.answer(200, answers.head())
        scripted_table.head()
        assert HEADER not in loopback.seen[0].headers

    def test_a_table_can_be_used_for_one_and_stays_what_it_was(
        self, loopback: Loopback, scripted_table: Table
    ):
        loopback.answer(200, answers.head())
        scripted_table.for_application(APPLICATION).head()
        loopback.answer(200, answers.head())
        scripted_table.head()
        assert [seen.headers.get(HEADER) for seen in loopback.seen] == [APPLICATION, None]

    @pytest.mark.parametrize("text", ["", "a b", "x\r\nEvil: 1", "é", "a" * 129])
    def test_what_is_no_id_is_refused_before_anything_is_sent(self, scripted_table: Table, text):
        with pytest.raises(ValueError, match="application id"):
            connect("http://127.0.0.1:8720", application_id=text)
        with pytest.raises(ValueError, match="application id"):
            scripted_table.for_application(text)


class TestHistory:
    def test_a_commit_says_which_application_made_it(self, lake: Lake):
        table = new_table(lake)
        receipt = table.for_application(APPLICATION).transaction().commit("WRITE")
        (commit, *_) = table.history()
        assert commit.version == receipt.version
        assert commit.tags == {"spark.app.id": APPLICATION}
        assert APPLICATION.encode() in table.commit_bytes(receipt.version)

    def test_a_writers_own_tag_of_that_name_stays(self, lake: Lake):
        table = new_table(lake)
        own = {"spark.app.id": "mine", "team": "air"}
        table.for_application(APPLICATION).transaction().commit("WRITE", tags=own)
        assert table.history()[0].tags == own

    def test_the_same_work_of_a_restarted_application_is_still_a_retry(self, lake: Lake):
        table = new_table(lake)
        head = table.head()
        receipts = [
            table.for_application(f"app-{attempt}")
            .transaction(transaction_id="nightly-7", head=head)
            .commit("WRITE")
            for attempt in (1, 2)
        ]
        assert receipts[0].version == receipts[1].version
        assert [receipt.replayed for receipt in receipts] == [False, True]
        assert table.history()[0].tags == {"spark.app.id": "app-1"}


class TestTrace:
    def test_a_program_that_traces_passes_its_span_on(
        self, loopback: Loopback, scripted_table: Table
    ):
        tracer = TracerProvider().get_tracer("test")
        loopback.answer(200, answers.head())
        with tracer.start_as_current_span("job") as span:
            scripted_table.head()
        context = span.get_span_context()
        _, trace_id, span_id, _ = loopback.seen[0].headers["traceparent"].split("-")
        assert trace_id == trace.format_trace_id(context.trace_id)
        assert span_id == trace.format_span_id(context.span_id)

    def test_outside_a_span_nothing_is_sent(self):
        assert trace_headers() == {}
