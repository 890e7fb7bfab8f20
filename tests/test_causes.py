from whichwall.analyze.causes import FINDING, LEGEND, MEANING, legend_expression
from whichwall.schemas.gaps import CAUSES


def test_every_cause_has_its_words_in_order() -> None:
    assert tuple(LEGEND) == tuple(MEANING) == tuple(FINDING) == CAUSES


def test_a_legend_shows_words_and_leaves_other_labels_alone() -> None:
    expression = legend_expression()

    assert "'launch': 'launched too late'" in expression
    assert expression.endswith("[datum.label] || datum.label")
