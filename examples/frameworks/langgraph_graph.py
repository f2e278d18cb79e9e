"""LangGraph, with a graph of one's own: `python examples/frameworks/langgraph_graph.py`, with a key or without."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    from common import TASKS, endpoint, get_expenses, show
except ModuleNotFoundError as problem:
    if problem.name != "common":
        raise
    raise SystemExit("common.py is missing: copy the whole folder 'examples', not one file of it") from None

from langchain_core.messages import SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from moonbox.adapters.langchain import LangChain


def main() -> None:
    with endpoint("OPENAI_API_KEY", "gpt-5.5") as api, LangChain([get_expenses]) as box:
        model = ChatOpenAI(model=api.model, base_url=api.at("/v1"), api_key=api.key).bind_tools(box.tools)
        system = SystemMessage(box.system_prompt)

        def ask(state: MessagesState) -> dict[str, list[object]]:
            return {"messages": [model.invoke([system, *state["messages"]])]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", ask)
        graph.add_node("tools", ToolNode(box.tools))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition)
        graph.add_edge("tools", "model")
        agent = graph.compile()
        for number, task in enumerate(TASKS):
            config = {"configurable": {"thread_id": str(number)}}
            done = agent.invoke({"messages": [("user", task.question)]}, config)
            show(task, done["messages"][-1].text)


if __name__ == "__main__":
    main()
