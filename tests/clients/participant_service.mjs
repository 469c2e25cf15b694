// A service that takes money, on the participant kit as it is installed. Its charges are rows of the database.
//
//   participant_service.mjs FOLDER express|fastify      with NODE_MODULES and PG* in the environment
//
// FOLDER is where npm has installed sagad-participant. Prints the port. A customer decides what happens: `declined` is
// refused for good, `later` for now, `breaks` throws after the effect, `commits` ends the transaction too early, and
// `waits` holds the work until GET /go.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, framework] = process.argv.slice(2)
const installed = createRequire(join(folder, 'package.json'))
const packages = createRequire(join(process.env.NODE_MODULES, 'package.json'))
const load = async (from, name) => import(pathToFileURL(from.resolve(name)).href)

const { default: pg } = await load(packages, 'pg')
const { Participant } = await load(installed, 'sagad-participant')
const { once, undo, look, promise } = await load(installed, `sagad-participant/${framework}`)

const pool = new pg.Pool({ max: 20 })
pool.on('error', () => {}) // an idle connection that ends is replaced
const participant = new Participant(pool, { timeoutMs: Number(process.env.TIMEOUT_MS ?? 30_000) })

let open,
  held = 0 // requests that have come to the gate
const gate = new Promise((resolve) => (open = resolve))

async function charge({ body, headers }, sql) {
  const key = headers['idempotency-key']
  await sql.query('insert into charge (key, customer, amount) values ($1, $2, $3)', [key, body.customer, body.amount])
  if (body.customer === 'declined') return { status: 402, body: { error: 'declined' } }
  if (body.customer === 'later') return { status: 503 }
  if (body.customer === 'breaks') throw Object.assign(new Error('after the effect'), { status: 400, statusCode: 400 })
  if (body.customer === 'commits') await sql.query('commit')
  if (body.customer === 'waits') {
    held++
    await gate
  }
  return { status: 201, body: { id: key, amount: body.amount } }
}

async function refund({ params }, sql, first) {
  if (first.body.id !== params.key) throw new Error('the first answer is there')
  await sql.query('update charge set refunds = refunds + 1 where key = $1', [params.key])
}

const count = async ({ params }) =>
  (await pool.query('select count(*)::int4 as made from charge where customer = $1', [params.customer])).rows[0]

async function listen() {
  if (framework === 'express') {
    const { default: express } = await load(packages, 'express')
    const app = express().disable('x-powered-by').set('env', 'test') // no stack on standard error
    app.use(express.json())
    app.post('/charges', once(participant, charge))
    app.delete('/charges/by-key/:key', undo(participant, refund))
    app.get('/charges/by-key/:key', look(participant))
    app.get('/idempotency', promise(participant))
    app.get('/customers/:customer', async (request, response) => response.json(await count(request)))
    app.get('/held', (_, response) => response.json({ held }))
    app.get('/go', (_, response) => response.json({ gone: open() }))
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    return server.address().port
  }
  const { default: fastify } = await load(packages, 'fastify')
  const app = fastify()
  app.post('/charges', once(participant, charge))
  app.delete('/charges/by-key/:key', undo(participant, refund))
  app.get('/charges/by-key/:key', look(participant))
  app.get('/idempotency', promise(participant))
  app.get('/customers/:customer', count)
  app.get('/held', async () => ({ held }))
  app.get('/go', async () => ({ gone: open() }))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server.address().port
}

console.log(await listen())
