// Clients that are slow on purpose: one byte a second, headers that never end, promised bodies that never come, answers
// that nobody reads.
import { connect } from 'node:net'
import { sleep } from '../../../lib/world.mjs'

const kinds = {
  'one byte a second': (socket) =>
    drip(socket, 'POST /v1/sagas HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{"saga": "order"}', 1000),
  'headers that never end': (socket) => {
    socket.write('GET /v1/sagas HTTP/1.1\r\nHost: x\r\n')
    const timer = setInterval(
      () => (socket.destroyed ? clearInterval(timer) : socket.write('X-More: of the same\r\n')),
      20
    )
  },
  'a body that does not come': (socket) =>
    socket.write(
      'POST /v1/sagas HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n{"saga":'
    ),
  'answers that nobody reads': (socket) => {
    socket.pause()
    for (let i = 0; i < 200; i++) socket.write('GET /v1/sagas?limit=500 HTTP/1.1\r\nHost: x\r\n\r\n')
  },
  'nothing at all': () => {},
  'no HTTP': (socket) => socket.write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3, 0, 10, 13, 10, 13, 10]))
}

function drip(socket, text, ms) {
  let at = 0
  const timer = setInterval(() => {
    if (socket.destroyed || at >= text.length) clearInterval(timer)
    else socket.write(text[at++])
  }, ms)
}

export const clients = {
  name: 'clients',
  topology: 'plain',
  weight: 1,
  async fire(run) {
    const which = run.world.pick(Object.keys(kinds))
    const engine = run.world.pick(run.world.living())
    if (!engine) return undefined
    const sockets = Array.from({ length: 20 }, () => {
      const socket = connect({ host: engine.host, port: engine.port })
      socket.on('error', () => {})
      socket.on('connect', () => kinds[which](socket))
      return socket
    })
    run.background(
      sleep(6000).then(() => {
        for (const socket of sockets) socket.destroy()
      })
    )
    await sleep(100)
    return `clients: ${which}`
  }
}
