import pytest

pytest.register_assert_rewrite("tests.run.attached.suite")
