// The evidence of the judge: the shop's ledger, the clients' notes and the rows of PostgreSQL. The log comes saga by
// saga, so that a campaign may be larger than memory. `commit` is the time at which PostgreSQL committed the row, by
// its own clock (track_commit_timestamp), in microseconds.
import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { join } from 'node:path'

const fieldEnd = '\u0002'

async function* rows(world, text) {
  const copy = `copy (${text}) to stdout (format csv, delimiter E'\\x02', quote E'\\x01')`
  const child = spawn(
    join(world.binaries, 'psql'),
    ['-X', '-q', '-d', world.dsn, '-v', 'ON_ERROR_STOP=1', '-c', copy],
    { stdio: ['ignore', 'pipe', 'pipe'] }
  )
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  const ended = new Promise((resolve) => child.on('close', resolve))
  for await (const line of createInterface({ input: child.stdout, crlfDelay: Infinity })) yield line.split(fieldEnd)
  if ((await ended) !== 0) throw new Error(`psql: ${errors}`)
}

async function grouped(world, text, make) {
  const bySaga = new Map()
  for await (const row of rows(world, text)) {
    const item = make(row)
    if (!bySaga.has(item.saga)) bySaga.set(item.saga, [])
    bySaga.get(item.saga).push(item)
  }
  return bySaga
}

export async function readLedger(path) {
  const lines = []
  for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    if (!text) continue
    const { n, t_in, key, request, method, effect, kind, id, target, fault, status, body } = JSON.parse(text)
    if (method !== 'GET')
      lines.push({ n, t_in, key, request, effect, kind, id, target, fault, status, charge: body?.charge_id })
  }
  return lines
}

async function readDefinitions(world) {
  const found = { tools: new Map(), sagas: new Map() }
  for (const [table, into] of [
    ['tool', found.tools],
    ['definition', found.sagas]
  ]) {
    for await (const [name, version, body] of rows(
      world,
      `select name, version, convert_from(body, 'UTF8') from sagad.${table}`
    ))
      into.set(`${name}@${version}`, JSON.parse(body))
  }
  return found
}

export async function readEvidence(world, notes) {
  const sagas = new Map()
  for await (const [id, shard, name, version, status, business, ended] of rows(
    world,
    `select id, shard, name, version, status, coalesce(business_id, ''), ended_at is not null from sagad.saga`
  )) {
    sagas.set(id, { id, shard: Number(shard), name, version: Number(version), status, business, ended: ended === 't' })
  }
  const escalations = await grouped(
    world,
    "select saga, number, resolved_at is null, coalesce(step, ''), reason from sagad.escalation",
    ([saga, number, open, step, reason]) => ({ saga, number: Number(number), open: open === 't', step, reason })
  )
  const approvals = await grouped(
    world,
    'select saga, number, status, step from sagad.approval',
    ([saga, number, status, step]) => ({ saga, number: Number(number), status, step })
  )
  let left = 0
  for await (const [count] of rows(world, 'select count(*) from sagad.inbox')) left = Number(count)
  return {
    ledger: await readLedger(world.ledgerPath),
    notes,
    sagas,
    escalations,
    approvals,
    inbox: left,
    definitions: await readDefinitions(world),
    logs: () => logs(world)
  }
}

// Yields {saga, turns: [{seq, count, epoch, at, commit, records}]}.
async function* logs(world) {
  let open
  for await (const [saga, seq, count, epoch, at, commit, payload] of rows(
    world,
    `select saga, seq, records, epoch, (extract(epoch from at) * 1000)::int8,
      (extract(epoch from pg_xact_commit_timestamp(xmin)) * 1000000)::int8, convert_from(payload, 'UTF8') from sagad.log
      order by shard, saga, seq`
  )) {
    if (open?.saga !== saga) {
      if (open) yield open
      open = { saga, turns: [] }
    }
    open.turns.push({
      seq: Number(seq),
      count: Number(count),
      epoch: Number(epoch),
      at: Number(at),
      commit: Number(commit),
      records: JSON.parse(payload)
    })
  }
  if (open) yield open
}

// Returns what is known about some sagas, to find a cause: their logs and the lines of the shop.
export async function storyOf(world, evidence, names) {
  const lines = []
  for (const name of names) {
    const found = [...evidence.sagas.values()].find((saga) => saga.business === name || saga.id === name)
    if (!found) continue
    lines.push(`${name}: ${found.id}, shard ${found.shard}, ${found.status}`)
    const keys = new Set()
    for await (const [seq, epoch, commit, payload] of rows(
      world,
      `select seq, epoch, pg_xact_commit_timestamp(xmin), convert_from(payload, 'UTF8') from sagad.log 
        where shard = ${found.shard} and saga = '${found.id}' order by seq`
    )) {
      lines.push(`  ${seq} epoch ${epoch} ${commit} ${payload}`)
      for (const record of JSON.parse(payload)) if (record.key) keys.add(record.key)
    }
    for (const line of evidence.ledger)
      if (keys.has(line.key)) lines.push(`  shop ${new Date(line.t_in).toISOString()} ${JSON.stringify(line)}`)
  }
  return lines
}
