// An agent of the tests, on the protocol's npm library. It keeps its sessions in files of its working directory, so that
// another process of it can load them, and does what the lines of the prompt say.
import * as acp from "@agentclientprotocol/sdk";
import { execFileSync, spawn } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";

const { agent: request, client: ask } = acp.methods;
const sessions = new Map(); // id to { file, cancelled }

const say = (client, sessionId, text) =>
  client.notify(ask.session.update, { sessionId, update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } } });

// The verbs of a prompt; each gets the client, the session and the rest of its line.
const verbs = {
  say: (client, id, text) => say(client, id, text + "\n"),
  part: (client, id, text) => say(client, id, text),
  think: (client, sessionId, text) =>
    client.notify(ask.session.update, { sessionId, update: { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: text + "\n" } } }),
  tool: async (client, sessionId, kind) => {
    const call = { sessionId, update: { sessionUpdate: "tool_call", toolCallId: "t-" + kind, title: "tool " + kind, kind, status: "pending" } };
    await client.notify(ask.session.update, call);
    const { outcome } = await client.request(ask.session.requestPermission, {
      sessionId,
      toolCall: { toolCallId: "t-" + kind },
      options: [
        { optionId: "always", name: "Always", kind: "allow_always" },
        { optionId: "yes", name: "Yes", kind: "allow_once" },
        { optionId: "no", name: "No", kind: "reject_once" },
      ],
    });
    await say(client, sessionId, `${kind} ${outcome.optionId ?? outcome.outcome}\n`);
  },
  read: async (client, sessionId, path) => {
    try {
      const { content } = await client.request(ask.fs.readTextFile, { sessionId, path });
      await say(client, sessionId, `read ${content.trim()}\n`);
    } catch (e) {
      await say(client, sessionId, `not read: ${e.message}\n`);
    }
  },
  write: async (client, sessionId, rest) => {
    const [path, content] = rest.split("=");
    try {
      await client.request(ask.fs.writeTextFile, { sessionId, path, content });
      await say(client, sessionId, `wrote ${path}\n`);
    } catch (e) {
      await say(client, sessionId, `not written: ${e.message}\n`);
    }
  },
  env: (client, id, name) => say(client, id, `${process.env[name]}\n`),
  history: (client, id) => say(client, id, `prompts ${readFileSync(sessions.get(id).file, "utf8").trim().split("\n").length}\n`),
  flood: async (client, id, n) => {
    for (let i = 0; i < Number(n); i++) await say(client, id, `line ${i}\n`);
  },
  noise: (_client, _id, text) => console.log(text),
  child: (client, id) => say(client, id, `pids ${process.pid} ${execFileSync("/bin/sh", ["-c", "sleep 1000 >/dev/null 2>&1 & echo $!"]).toString()}`),
  hold: () => {
    spawn("sleep", ["1000"], { detached: true, stdio: ["ignore", "inherit", "ignore"] }).unref();
    process.kill(process.pid, "SIGKILL");
  },
  mode: (client, id) => say(client, id, `mode ${sessions.get(id).mode}\n`),
  exit: (_client, _id, code) => process.exit(Number(code)),
  fail: (_client, _id, text) => {
    throw acp.RequestError.internalError({ details: text }, text);
  },
  wait: (_client, id) =>
    new Promise((done) => {
      sessions.get(id).cancel = done;
    }),
  once: async (client, id, name) => {
    const file = `${sessions.get(id).cwd}/${name}`;
    if (!existsSync(file)) return writeFileSync(file, "");
    await say(client, id, "done in a later attempt\n");
    return { stopReason: "end_turn" };
  },
  stop: (_client, _id, reason) => ({ stopReason: reason }),
};

// With the argument "decides", sessions begin in a mode in which the agent asks nobody.
const modes = process.argv[2] === "decides" ? { currentModeId: "auto", availableModes: ["auto", "default"].map((id) => ({ id, name: id })) } : undefined;

acp
  .agent({ name: "test-agent" })
  .onRequest(request.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: process.argv[2] === "resumes" ? { sessionCapabilities: { resume: {} } } : { loadSession: true },
    agentInfo: { name: "test-agent", version: "1.0" },
    authMethods: [],
  }))
  .onRequest(request.session.new, ({ params }) => {
    const sessionId = randomUUID();
    sessions.set(sessionId, { file: `${params.cwd}/${sessionId}.session`, cwd: params.cwd, mode: modes?.currentModeId });
    return { sessionId, modes };
  })
  .onRequest(request.session.load, async ({ params, client }) => {
    const file = `${params.cwd}/${params.sessionId}.session`;
    if (!existsSync(file)) throw acp.RequestError.resourceNotFound(params.sessionId);
    sessions.set(params.sessionId, { file, cwd: params.cwd, mode: modes?.currentModeId });
    const replay = async () => {
      for (const text of readFileSync(file, "utf8").trim().split("\n")) {
        const content = { type: "text", text };
        await client.notify(ask.session.update, { sessionId: params.sessionId, update: { sessionUpdate: "user_message_chunk", content } });
        await say(client, params.sessionId, "replayed\n");
      }
    };
    if (process.argv.includes("late")) setTimeout(replay, 50); // as Gemini CLI 0.61 does, which answers first
    else await replay();
    return { modes };
  })
  .onRequest(request.session.setMode, ({ params }) => {
    sessions.get(params.sessionId).mode = params.modeId;
    return {};
  })
  .onRequest(request.session.resume, ({ params }) => {
    const file = `${params.cwd}/${params.sessionId}.session`;
    if (!existsSync(file)) throw acp.RequestError.resourceNotFound(params.sessionId);
    sessions.set(params.sessionId, { file, cwd: params.cwd });
    return {};
  })
  .onRequest(request.session.prompt, async ({ params, client }) => {
    const session = sessions.get(params.sessionId);
    const text = params.prompt.map((block) => block.text).join("");
    appendFileSync(session.file, JSON.stringify(text) + "\n");
    for (const line of text.split("\n")) {
      const [verb, ...rest] = line.split(" ");
      const result = await verbs[verb]?.(client, params.sessionId, rest.join(" "));
      if (result?.stopReason) return result;
      if (session.cancelled) return { stopReason: "cancelled" };
    }
    return { stopReason: "end_turn" };
  })
  .onNotification(request.session.cancel, ({ params }) => {
    const session = sessions.get(params.sessionId);
    session.cancelled = true;
    session.cancel?.();
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
