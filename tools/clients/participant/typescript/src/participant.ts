// Requests that take effect once: each is claimed in the transaction of its effect, and its first answer is kept there.
// participant.sql has the rules; this file runs them in the right order and words the answers.
import { createHash } from 'node:crypto'

// What `pg` gives; any driver of this shape will do.
export interface Sql {
  query(text: string, values?: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
}
export interface Connection extends Sql {
  on(event: 'error', listener: (error: Error) => void): unknown
  off(event: 'error', listener: (error: Error) => void): unknown
  release(error?: Error): void
}
export interface Pool {
  connect(): Promise<Connection>
}

// The answer of a service: a status, and a body that becomes JSON.
export interface Answer {
  status: number
  body?: any // as JSON has it
}
export interface Reply {
  status: number
  headers: Record<string, string>
  body: string
}

export interface Asked {
  key: string | undefined
  method: string
  url: string
  body: unknown
}

export interface ParticipantOptions {
  // How long one statement may take, and how long the work may leave the transaction idle; 30 s. Then nothing is kept.
  timeoutMs?: number
}

const keyForm = /^[\x21-\x7e]{1,255}$/

// Statuses after which sagad repeats the request: nothing of it may be kept. All others below 500 are final.
const passing = new Set([408, 409, 425, 429])
const isFinal = (status: number) => status < 500 && !passing.has(status)

const replyOf = (status: number, body: string, headers: Record<string, string> = {}): Reply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body
})

function problem(status: number, title: string, headers?: Record<string, string>): Reply {
  return replyOf(status, JSON.stringify({ title, status }), { 'content-type': 'application/problem+json', ...headers })
}

const noKey = () => problem(400, 'Idempotency-Key is missing, or is not 1 to 255 visible characters')
const underWay = () => problem(409, 'The same request is under way', { 'retry-after': '1' })

// Two requests that this service reads as the same ask for the same.
const fingerprint = ({ method, url, body }: Asked) =>
  createHash('sha256')
    .update(JSON.stringify([method, url, body ?? null]))
    .digest('hex')

export class Participant {
  private readonly timeoutMs: number

  constructor(
    private readonly pool: Pool,
    options: ParticipantOptions = {}
  ) {
    this.timeoutMs = options.timeoutMs ?? 30_000
  }

  // Does `work` once for a key. Its statements on `sql` are kept together with its answer, or not at all. Statuses from
  // 400 on undo its statements; a final one is the answer to each repeat, too.
  async once(asked: Asked, work: (sql: Sql) => Promise<Answer>): Promise<Reply> {
    const { key } = asked
    if (key === undefined || !keyForm.test(key)) return noKey()
    return this.inTransaction(async (sql) => {
      const { rows } = await sql.query('select verdict, status, answer::text from sagad_participant.claim($1, $2)', [
        key,
        fingerprint(asked)
      ])
      const { verdict, status, answer } = rows[0] as { verdict: string; status: number; answer: string | null }
      if (verdict === 'repeat') return kept(replyOf(status, answer ?? 'null', { 'idempotent-replayed': 'true' }))
      if (verdict === 'under_way') return dropped(underWay())
      if (verdict === 'differs') return dropped(problem(422, 'This Idempotency-Key came with another request before'))
      if (verdict === 'void') return dropped(problem(410, 'This request was undone before it came'))
      await sql.query('savepoint work')
      const said = await work(sql)
      if (!Number.isInteger(said.status) || said.status < 200 || said.status > 599)
        throw new TypeError(`an answer has a status of 200 to 599, not ${said.status}`)
      const body = JSON.stringify(said.body ?? null)
      if (!isFinal(said.status)) return dropped(replyOf(said.status, body))
      if (said.status >= 400) await sql.query('rollback to savepoint work')
      await sql.query('select sagad_participant.settle($1, $2, $3)', [key, said.status, body])
      return kept(replyOf(said.status, body))
    })
  }

  // Undoes once what was done under a key. A key that never came is refused from now on. `first` is the answer to the
  // request that `work` undoes.
  async undo(key: string | undefined, work: (sql: Sql, first: Answer) => Promise<void>): Promise<Reply> {
    if (key === undefined || !keyForm.test(key)) return noKey()
    return this.inTransaction(async (sql) => {
      const { rows } = await sql.query('select * from sagad_participant.undo($1)', [key])
      const { verdict, status, answer } = rows[0] as { verdict: string; status: number; answer: unknown }
      if (verdict === 'under_way') return dropped(underWay())
      if (verdict === 'new') await work(sql, { status, body: answer })
      return kept(replyOf(200, JSON.stringify({ undone: verdict !== 'nothing' })))
    })
  }

  // Says what became of a key, for the probe of a tool: 200 when it took effect, 404 when not, 409 while under way.
  async look(key: string | undefined): Promise<Reply> {
    if (key === undefined || !keyForm.test(key)) return noKey()
    return this.inTransaction(async (sql) => {
      const { rows } = await sql.query('select * from sagad_participant.look($1)', [key])
      const { verdict, status, answer, undone } = rows[0] as Record<string, unknown>
      if (verdict === 'under_way') return dropped(underWay())
      if (verdict !== 'done') return dropped(problem(404, 'No request with this key took effect'))
      return dropped(replyOf(200, JSON.stringify({ status, answer, undone })))
    })
  }

  // Says how long keys are kept: `key.window` of a tool may be that long.
  async promise(): Promise<Reply> {
    return this.inTransaction(async (sql) => {
      const { rows } = await sql.query(
        'select floor(extract(epoch from kept_for))::int8::text as seconds from sagad_participant.promise'
      )
      return dropped(
        replyOf(200, JSON.stringify({ header: 'Idempotency-Key', window: `${String(rows[0]?.['seconds'])}s` }))
      )
    })
  }

  // Replies only after the end of the transaction. An error keeps nothing, except that of a lost COMMIT: then nobody
  // knows, the caller hears 500, and its repeat finds out.
  private async inTransaction(work: (sql: Sql) => Promise<Ended>): Promise<Reply> {
    const connection = await this.pool.connect()
    const ignore = () => {} // the statement under way gets the same error
    connection.on('error', ignore)
    let broken: Error | undefined
    try {
      await connection.query('begin isolation level read committed')
      await connection.query(
        "select set_config('statement_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $1, true)",
        [`${this.timeoutMs}ms`]
      )
      const { keep, reply } = await work(connection)
      await connection.query(keep ? 'commit' : 'rollback')
      return reply
    } catch (cause) {
      broken = new Error('the request was not done, or its COMMIT was lost; a repeat finds out', { cause })
      throw broken // without a status of its own, so that the framework answers 500
    } finally {
      connection.off('error', ignore)
      connection.release(broken) // a connection in doubt is closed, which also rolls back
    }
  }
}

interface Ended {
  keep: boolean
  reply: Reply
}
const kept = (reply: Reply): Ended => ({ keep: true, reply })
const dropped = (reply: Reply): Ended => ({ keep: false, reply })
