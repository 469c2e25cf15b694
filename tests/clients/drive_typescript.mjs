// Drives the TypeScript client as it is installed: one JSON line with an ask on standard input, one JSON line with what
// the client says of it on standard output.
//
//   drive_typescript.mjs FOLDER      where npm has installed sagad-client
//
// An ask has `url`, `token`, `verb` and what the verb takes; see cases.mjs. `tokens` are handed out one a request.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const folder = process.argv[2]
const { Sagad, inRun, inTrace, resultOf } = await import(
  pathToFileURL(createRequire(join(folder, 'package.json')).resolve('sagad-client')).href
)

function outcomeOf(outcome) {
  const { kind, code, result, replayed } = outcome
  return kind === 'Done' ? { kind, result, replayed } : { kind, ...(code && { code }) }
}

const verbs = {
  async start(sagad, { saga, ...options }) {
    const started = await sagad.start(saga, options)
    return { started: started.saga, id: started.id }
  },
  async wait(sagad, { saga, businessId, sagaId, patienceMs }) {
    const found = await sagad.wait(sagaId ?? { saga, businessId }, { patienceMs })
    return { status: found.status }
  },
  async call(sagad, { tool, run, traceparent, ...options }) {
    const work = () => inRun(run, () => sagad.call(tool, options))
    return outcomeOf(await (traceparent ? inTrace({ traceparent }, work) : work()))
  },
  async open(sagad, { calls, lenient, returns, throws, ...options }) {
    const outcomes = []
    let id
    const said = await sagad
      .open(options, async (saga) => {
        id = saga.id
        for (const [n, { tool, ...more }] of calls.entries()) {
          // By the context, and by name.
          const outcome = await (n % 2 === 0 ? sagad.call(tool, more) : saga.call(tool, more))
          outcomes.push(outcome.kind)
          if (!lenient) resultOf(outcome)
        }
        if (throws) throw new Error(throws)
        return returns
      })
      .then(
        (value) => ({ value }),
        (error) => errorOf(error)
      )
    return { ...said, outcomes, id }
  }
}

const errorOf = ({ name, code, message }) => ({ error: name, ...(typeof code === 'string' && { code }), message })

for await (const line of createInterface({ input: process.stdin })) {
  const { url, token, tokens, verb, ...ask } = JSON.parse(line)
  let asked = 0
  const sagad = new Sagad({ url, token: tokens ? () => tokens[Math.min(asked++, tokens.length - 1)] : token })
  const said = await verbs[verb](sagad, ask).catch(errorOf)
  process.stdout.write(`${JSON.stringify(said)}\n`)
}
