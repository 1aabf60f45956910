// Lists and calls a tool with the TypeScript SDK, over stdio and over HTTP.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [program, config, url, token] = process.argv.slice(2);

async function use(transport) {
  const client = new Client({ name: "tests", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ["word_count"]);
  const result = await client.callTool({ name: "word_count", arguments: { text: "to be or not" } });
  assert.equal(result.structuredContent.words, 4);
  const refused = await client.callTool({ name: "word_count", arguments: { wrong: 1 } });
  assert.equal(refused.isError, true);
  await client.close();
}

await use(new StdioClientTransport({ command: program, args: ["serve", "--stdio", "--config", config] }));
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await use(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
console.log("ok");
