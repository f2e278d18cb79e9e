"""LiteLLM: its tests, in an environment of its own."""

from tests.adapters.framework_tests import test_examples_alone, test_inside, test_the_page

__all__ = ["test_examples_alone", "test_inside", "test_the_page"]
