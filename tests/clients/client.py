"""Lists and calls a tool with the Python SDK, over stdio and over HTTP."""

import asyncio
import sys

import httpx
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def use(read, write):
    async with ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        assert [tool.name for tool in tools.tools] == ["word_count"], tools
        result = await session.call_tool("word_count", {"text": "to be or not"})
        content = getattr(result, "structured_content", None) or result.structuredContent
        assert content["words"] == 4, result
        refused = await session.call_tool("word_count", {"wrong": 1})
        assert getattr(refused, "is_error", None) or getattr(refused, "isError", False), refused


async def main(program, config, url, token):
    stdio = StdioServerParameters(command=program, args=["serve", "--stdio", "--config", config])
    async with stdio_client(stdio) as (read, write):
        await use(read, write)
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as client:
        async with streamable_http_client(url, http_client=client) as streams:
            await use(streams[0], streams[1])
    print("ok")


asyncio.run(main(*sys.argv[1:]))
