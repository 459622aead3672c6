"""Numbers formatted for people: numbers of one column that differ look different."""

import pytest

from advmdp.core.wording import amount, apart, meant, number, one_of


def test_the_two_lowest_numbers_of_a_column_differ() -> None:
    assert apart([2188.6, 2188.5, 2191.0]) == ["2,188.60", "2,188.50", "2,191.00"]
    assert apart([5.0, 10.0, 20.0]) == ["5.0", "10.0", "20.0"]
    assert apart([-0.573, 0.668, None]) == ["-0.573", "0.668", "–"]


@pytest.mark.parametrize("values", [[0.0, 0.0], [1e12, 2.0], [1e-9], [], [None]])
def test_columns_without_a_common_form_are_written_one_by_one(values: list) -> None:
    assert apart(values) == [number(value) for value in values]


def test_nearly_equal_numbers_do_not_get_endless_decimals() -> None:
    assert max(map(len, apart([1.0, 1.0 + 1e-12]))) <= 8


def test_plain_losses_need_no_unit() -> None:
    assert amount(12.0) == "12"
    assert amount(12.0, "ms") == "12 ms"
    assert amount(None, "ms") == "– ms"


@pytest.mark.parametrize(
    ("word", "suggested"),
    [
        ("scale", "confidence_scale"),  # a part of one name, though "share" has more letters in common
        ("etta", "eta"),
        ("shares", "share"),
        ("confidence", "confidence"),  # a part of two names
        ("ETA", "eta"),
        ("Confidence_Scal", "confidence_scale"),
        ("e", None),
        ("colour", None),
    ],
)
def test_the_closest_name_is_suggested(word: str, suggested: str | None) -> None:
    names = ["eta", "share", "confidence", "confidence_scale"]
    assert meant(word, names) == ("" if suggested is None else f"; did you mean {suggested}?")


def test_names_that_are_equally_close_are_all_suggested() -> None:
    assert meant("fil", ["hours", "fill", "file"]) == "; did you mean fill or file?"
    assert one_of("fil", ["hours", "file"]) == "one of hours, file; did you mean file?"
    assert one_of(3, ["hours", "file"]) == "one of hours, file"
