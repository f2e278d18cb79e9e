"""Code of a user who checks types: what the adapters give is what the clients take. `make types` checks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.genai import types

from moonbox.adapters.anthropic import AnthropicMessages
from moonbox.adapters.google import GoogleGenAI
from moonbox.adapters.openai import OpenAIChat, OpenAIResponses

if TYPE_CHECKING:
    from anthropic import Anthropic
    from anthropic.types import MessageParam, ToolResultBlockParam
    from google import genai
    from openai import OpenAI
    from openai.types.chat import ChatCompletion, ChatCompletionMessageParam, ChatCompletionToolMessageParam
    from openai.types.responses import Response


def chat(client: OpenAI, messages: list[ChatCompletionMessageParam]) -> None:
    agent = OpenAIChat([])
    answer = client.chat.completions.create(model="m", messages=messages, tools=agent.tools)
    messages += agent.turn(answer)
    calls = answer.choices[0].message.tool_calls or ()
    results: list[ChatCompletionToolMessageParam] = [agent.handle(call) for call in calls]
    messages += results
    streamed: ChatCompletion = agent.collect(
        client.chat.completions.create(model="m", messages=messages, tools=agent.tools, stream=True)
    )
    print(streamed.id, agent.run(messages, client=client, model="m").response.id)


def responses(client: OpenAI) -> None:
    agent = OpenAIResponses([])
    answer = client.responses.create(model="m", input="hi", tools=agent.tools)
    answer = client.responses.create(model="m", input=agent.turn(answer), tools=agent.tools)
    response: Response = agent.run("hi", client=client, model="m").response
    print(answer.id, response.id)


def anthropic(client: Anthropic, messages: list[MessageParam]) -> None:
    agent = AnthropicMessages([])
    answer = client.messages.create(model="m", max_tokens=1, messages=messages, tools=agent.tools)
    messages += agent.turn(answer)
    results: list[ToolResultBlockParam] = agent.handle_all(answer)
    messages.append({"role": "user", "content": results})


def google(client: genai.Client) -> None:
    agent = GoogleGenAI([])
    config = types.GenerateContentConfig(tools=list(agent.tools))
    answer = client.models.generate_content(model="m", contents="hi", config=config)
    parts: list[types.Part] = agent.handle_all(answer)
    contents: list[types.Content] = agent.run("hi", client=client, model="m").messages
    print(parts, contents)
