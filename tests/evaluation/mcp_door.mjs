// How an agent speaks to sagad over the Model Context Protocol, as hosts of several kinds let it. Each request has a
// new JSON-RPC id, also the same one once more. The door answers as the HTTP API would, so that one agent and one judge
// do for both.

// What a host of each kind says of a call. `older` hosts speak the revision with a handshake.
export const hosts = {
  meta: {
    says: 'names run, step, scope, turn and emission in _meta',
    tells: ({ run, step, scope, turn, emission }) => ({
      meta: members({ run, step, scope, turn, emission }, (name) => `sagad/${name}`)
    })
  },
  headers: {
    says: 'names them in headers',
    older: true,
    tells: ({ run, step, scope, turn, emission }) => ({
      headers: {
        ...members({ run, step, scope, turn }, (name) => `saga-${name}`),
        ...(emission ? { 'idempotency-key': emission } : {})
      }
    })
  },
  'host keys': {
    says: 'sends what VS Code and Claude Code send, and nothing for sagad',
    tells: ({ run, turn, emission }) => ({
      meta: {
        'vscode.conversationId': run,
        'vscode.requestId': turn ?? 'turn 0',
        ...(emission ? { 'claudecode/toolUseId': emission } : {})
      }
    })
  },
  grant: { says: 'has an address that the host was granted, and says nothing at all', older: true, tells: () => ({}) },
  sessions: {
    says: 'begins new sessions when it likes, and sends what Codex sends',
    older: true,
    tells: ({ run, turn, emission }) => ({
      meta: {
        threadId: run,
        'x-codex-turn-metadata': { turn_id: turn ?? 'turn 0' },
        ...(emission ? { callId: emission } : {})
      }
    })
  }
}

// The wish as a host of this kind can say it.
export function wishOfHost(wish, host) {
  const says = { meta: ['step', 'scope'], headers: ['step', 'scope'], grant: ['scope'] }[host] ?? []
  return {
    ...wish,
    host,
    named: wish.named && says.includes('step'),
    scope: says.includes('scope') ? wish.scope : undefined
  }
}

const prefix = 'io.modelcontextprotocol/'
const closed = { type: 'urn:sagad:problem:saga-closed' } // there are no grants for a saga that has ended
const protocol = { older: '2025-11-25', newer: '2026-07-28' }

function members(values, name) {
  const there = Object.entries(values).filter(([, value]) => value !== undefined)
  return Object.fromEntries(there.map(([key, value]) => [name(key), value]))
}

export class McpDoor {
  // `granted` is a client without a token, for the addresses of grants. `tools` are those that sagad lists.
  constructor(wish, { client, granted, tools }) {
    this.wish = wish
    this.host = hosts[wish.host]
    this.client = client
    this.granted = granted
    this.tools = tools
    this.requests = 0
    this.grants = new Map() // what it is for -> path
  }

  // --- what an agent does ---

  async open(manner) {
    const { id, deadline } = this.wish
    if (this.wish.host === 'grant') {
      // The host opens the saga, and its agent knows an address only.
      return this.client.json('POST', '/v1/sagas', { open: true, id, deadline, on_timeout: 'abort' }, { manner })
    }
    const answer = await this.tool('saga_open', { name: id, deadline, on_timeout: 'abort' }, { run: id }, manner)
    return answer.json?.saga ? { ...answer, json: { ...answer.json, id: answer.json.saga } } : answer
  }

  async look(saga, manner) {
    const answer = await this.tool('saga_status', this.handle(saga), { saga, run: this.wish.id }, manner)
    // The host looks itself at a saga for which there is no grant.
    return answer.json === closed ? this.client.json('GET', `/v1/sagas/${saga}`, undefined, { manner }) : answer
  }

  end(saga, verb, manner) {
    const args = { ...this.handle(saga), ...(verb === 'abort' ? { note: 'the agent says so' } : {}) }
    return this.tool(`saga_${verb}`, args, { saga, run: this.wish.id }, manner)
  }

  call({ tool, args, saga, ...said }, manner) {
    const name = tool.replaceAll('.', '_')
    // A model passes the arguments that the list shows: a read takes no handle.
    const takes = this.tools.find((one) => one.name === name).inputSchema.properties.saga
    const handle = takes ? JSON.stringify(this.handle(saga)).slice(1, -1) : ''
    const rest = args.trim().slice(1)
    const text = handle ? `{${handle}${rest === '}' ? '' : ','}${rest}` : args
    return this.tool(name, text, { ...said, saga, run: this.wish.id }, manner)
  }

  // The handle that the model carries. A grant for a saga leaves none to carry.
  handle(saga) {
    return saga && this.wish.host !== 'grant' ? { saga } : {}
  }

  // --- one request ---

  // `args` is an object, or JSON text that goes out as it is.
  async tool(name, args, said, manner = {}) {
    const where = await this.address(said)
    if (where.lost || where.status) return where
    const { meta = {}, headers = {} } = this.host.tells(said)
    const text = typeof args === 'string' ? args : JSON.stringify(args)
    const answer = await this.ask(
      where,
      'tools/call',
      `"name":${JSON.stringify(name)},"arguments":${text}`,
      { meta: { ...meta, ...this.progress() }, headers: { ...headers, 'mcp-name': name } },
      manner
    )
    return answer.lost ? answer : readAnswer(answer)
  }

  ask({ client, path, session }, method, params, { meta = {}, headers = {} }, manner) {
    const version = this.host.older ? protocol.older : protocol.newer
    const declared = { [`${prefix}protocolVersion`]: version, [`${prefix}clientCapabilities`]: {} }
    const told = JSON.stringify({ ...meta, ...(this.host.older ? {} : declared) })
    const id = `${this.wish.id}/${this.requests++}`
    const all = `{${params}${params ? ',' : ''}"_meta":${told}}`
    const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}","params":${all}}`
    const { 'mcp-name': named, ...own } = headers
    return client.ask('POST', path, text, {
      manner,
      seconds: 60,
      headers: {
        ...own,
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': version,
        ...(this.host.older ? {} : { 'mcp-method': method, ...(named ? { 'mcp-name': named } : {}) }),
        ...(session ? { 'mcp-session-id': session } : {})
      }
    })
  }

  // Some ask for progress, and get a stream at once: one that may be cut before its answer.
  progress() {
    return this.wish.luck(`progress ${this.requests}`) < 0.3 ? { progressToken: this.requests } : {}
  }

  // Where the agent sends this request, or the answer of sagad that there is no such place now.
  address(said) {
    if (this.wish.host === 'grant') return this.grantFor(said)
    if (this.wish.host === 'sessions') return this.inSession()
    return { client: this.client, path: '/mcp' }
  }

  // The host makes a grant for each turn of its user.
  async grantFor({ saga, turn }) {
    const { id, scope } = this.wish
    const what = { ...(saga ? { saga } : { run: id }), ...(scope ? { scope } : {}), ...(turn ? { turn } : {}) }
    const key = JSON.stringify(what)
    if (!this.grants.has(key)) {
      const made = await this.client.json('POST', '/v1/grants', what)
      if (made.status === 404) return { status: 409, headers: {}, text: made.text, json: closed }
      if (made.status !== 201) return made
      this.grants.set(key, made.json.url)
    }
    return { client: this.granted, path: this.grants.get(key) }
  }

  async inSession() {
    if (!this.session || this.wish.luck(`drops ${this.requests}`) < 0.3) {
      const hello = `"protocolVersion":"${protocol.older}","capabilities":{},"clientInfo":{"name":"host","version":"1"}`
      const answer = await this.ask({ client: this.client, path: '/mcp' }, 'initialize', hello, {}, {})
      const id = answer.headers?.['mcp-session-id']
      if (!id) return answer.status === 200 ? { status: 500, text: 'no session id' } : answer
      this.session = id
    }
    return { client: this.client, path: '/mcp', session: this.session }
  }
}

// All tools that sagad lists, page by page.
export async function listTools(client) {
  const door = new McpDoor({ id: 'list', host: 'meta', luck: () => 1 }, { client })
  const tools = []
  for (let cursor; ;) {
    const params = cursor ? `"cursor":${JSON.stringify(cursor)}` : ''
    const answer = await door.ask({ client, path: '/mcp' }, 'tools/list', params, {}, {})
    if (answer.status === 503) return [] // it is still connecting
    if (!answer.json?.result) throw new Error(`the tools are not listed: ${answer.text ?? answer.lost}`)
    tools.push(...answer.json.result.tools)
    cursor = answer.json.result.nextCursor
    if (!cursor) return tools
  }
}

// The result of a tool as the HTTP API would have said it.
function readAnswer(answer) {
  const message = answer.headers['content-type']?.startsWith('text/event-stream') ? lastEvent(answer.text) : answer.json
  const { result } = message ?? {}
  if (answer.status !== 200 || !result) {
    // A stream that ended without its answer, because sagad did.
    if (answer.status === 200 && !message) return { lost: 'no answer in it' }
    return { ...answer, status: answer.status === 200 ? 400 : answer.status }
  }
  const { structuredContent: content, _meta: meta = {} } = result
  const text = result.content?.[0]?.text
  if (result.isError) {
    return { status: content?.status ?? 500, headers: {}, text: JSON.stringify(result), json: content }
  }
  if (JSON.stringify(JSON.parse(text)) !== JSON.stringify(content)) {
    return { status: 500, headers: {}, text: `the text is not the content: ${JSON.stringify(result)}` }
  }
  const headers = { 'idempotent-replayed': String(meta['sagad/replayed'] === true) }
  const key = meta['sagad/operation']
  return { status: 200, headers, text, json: key ? { key, result: content } : content }
}

function lastEvent(text) {
  const data = text.split('\n').filter((line) => line.startsWith('data:') && line.length > 6)
  try {
    const message = JSON.parse(data.at(-1).slice(5))
    return message.result || message.error ? message : undefined
  } catch {
    return undefined
  }
}
