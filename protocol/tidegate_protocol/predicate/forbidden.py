"""What Spark allows in an expression, but not in the condition of a filter."""

from sqlglot import exp

from tidegate_protocol.predicate.errors import InvalidPredicate
from tidegate_protocol.predicate.parsing import position
from tidegate_protocol.text import excerpt

_AGGREGATES = """
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor
    bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set corr count
    count_if count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric hll_sketch_agg hll_union_agg kurtosis last last_value listagg max max_by
    mean median min min_by mode percentile percentile_approx percentile_cont percentile_disc
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    skewness some std stddev stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop
    var_samp variance
"""
_WINDOW = "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number"
_GENERATORS = """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack
    variant_explode variant_explode_outer
"""
_KINDS = {
    **dict.fromkeys(_AGGREGATES.split(), "an aggregate"),
    **dict.fromkeys(_WINDOW.split(), "a window"),
    **dict.fromkeys(_GENERATORS.split(), "a generator"),
}
QUANTIFIERS = frozenset({"all", "any", "some"})
"""Words of `LIKE ANY (...)` that look like functions."""


def function_name(node: exp.Anonymous) -> str:
    """The name of a call, in lower case."""
    name = node.this
    return (name.name if isinstance(name, exp.Expr) else str(name)).lower()


def is_quantifier(node: exp.Expr) -> bool:
    """Whether this is the `ANY (...)` of `LIKE ANY (...)`, or its like."""
    return (
        isinstance(node, exp.Anonymous)
        and function_name(node) in QUANTIFIERS
        and isinstance(node.parent, exp.Like | exp.ILike)
    )


def check_function(node: exp.Anonymous) -> None:
    """Raise `InvalidPredicate` for a function of many rows, or one that makes rows."""
    if is_quantifier(node):
        return
    name = function_name(node)
    kind = _KINDS.get(name)
    if kind is not None:
        raise InvalidPredicate(
            f"{excerpt(name)} is {kind} function, which a predicate cannot have",
            position=position(node),
        )


def check_node(node: exp.Expr) -> None:
    """Raise `InvalidPredicate` for a piece of a query, or one that no expression has."""
    if isinstance(node, exp.Query | exp.Window | exp.Star | exp.Placeholder | exp.Parameter):
        raise InvalidPredicate(
            "a predicate cannot have subqueries, windows, '*' or parameters",
            position=position(node),
        )
