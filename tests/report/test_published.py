from ackworth.report.published import NOT_MEASURED, Pair, comparisons
from ackworth.testing.results import held_trial, sample_run


def test_each_trial_is_beside_its_own_table() -> None:
    run = sample_run()
    (found,) = comparisons(run, run["trials"][0])
    assert found.source == "FastMiniMQ 0.13.1, reboot report, item-1"
    assert found.pairs == (
        Pair("sent", "10,000,000", "400,000"),
        Pair("acked", "8,031,671", "398,720"),
        Pair("refused", "1,968,329", "0"),
        Pair("delivered", "8,031,671", "399,228"),
    )


def test_a_table_of_no_trial_is_beside_all_of_them() -> None:
    run = sample_run(held_trial("a"))
    run["published"] = [{"source": "s", "hardware": "h", "rows": [{"what": "acked per second", "value": 3200}]}]
    (found,) = comparisons(run, run["trials"][0])
    assert found.pairs == (Pair("acked per second", "3,200/s", "18,987/s"),)


def test_what_was_not_measured_or_not_published_is_said() -> None:
    run = sample_run(held_trial("a"))
    run["published"] = [{"rows": [{"what": "moon phase", "value": 4}, {"what": "acked"}]}]
    (found,) = comparisons(run, run["trials"][0])
    assert (found.source, found.hardware) == ("unnamed source", "hardware not named")
    assert found.pairs == (Pair("moon phase", "4", NOT_MEASURED), Pair("acked", "unknown", "398,720"))
