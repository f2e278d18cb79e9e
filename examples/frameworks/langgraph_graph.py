"""LangGraph, with a graph of your own.

pip install '.[langchain]' langchain-openai
OPENAI_API_KEY=… python langgraph_graph.py
"""

from __future__ import annotations

from typing import Any

from moonbox.adapters.langchain import LangChain  # first: it says what to install

# isort: split
from langchain_core.messages import SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

QUESTION = "What did the employees 1 to 20 spend together, in cents?"


def get_expenses(employee_id: int) -> list[dict[str, Any]]:
    """Expense items of one employee (1 to 20)."""
    return [{"item": "train", "cents": 1250 * employee_id}, {"item": "hotel", "cents": 9900}]


def main() -> None:
    with LangChain([get_expenses]) as box:
        model = ChatOpenAI(model="gpt-5.5").bind_tools(box.tools)
        system = SystemMessage(box.system_prompt)

        def ask(state: MessagesState) -> dict[str, list[object]]:
            return {"messages": [model.invoke([system, *state["messages"]])]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", ask)
        graph.add_node("tools", ToolNode(box.tools))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        thread = {"configurable": {"thread_id": "ada"}}
        done = graph.compile().invoke({"messages": [("user", QUESTION)]}, thread)
        print(done["messages"][-1].text)


if __name__ == "__main__":
    main()
