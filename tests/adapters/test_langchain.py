"""LangChain and LangGraph: their tests, in an environment of their own."""

from tests.adapters.framework_tests import test_examples_alone, test_inside, test_the_missing_package, test_the_page

__all__ = ["test_examples_alone", "test_inside", "test_the_missing_package", "test_the_page"]
