// The door of the shop: a proxy between the engines and the shop's HTTP. It can be told to strike when a request has
// come (shop:received), when its effect is there and the answer is held back (shop:effect), or when the answer has just
// gone (shop:reply). It can also give another answer than the shop did.
import { readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { connect, createServer } from 'node:net'

export const shopPlaces = ['received', 'effect', 'reply']

const head = (status, length, more = '') =>
  `HTTP/1.1 ${status} x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n${more}\r\n`

// Answers that no service should give. `served`: the shop has done its work, and only its answer is lost. The other
// answers say for certain that nothing happened, which is a lie if something did.
export const hostile = {
  html: {
    served: true,
    give: (socket) =>
      socket.end(`HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 27\r\n\r\n<html>log in, please</html>`)
  },
  cut_json: { served: true, give: (socket) => socket.end(`${head(201, 14)}{"id": "rs-1",`) },
  no_json: { served: true, give: (socket) => socket.end(`${head(201, 4)}\u0000\u0001\u0002{`) },
  wrong_length: { served: true, give: (socket) => socket.end(`${head(201, 5000)}{"id": "rs-1"}`) },
  negative_length: { served: true, give: (socket) => socket.end(head(201, -1)) },
  huge: {
    served: true,
    give: (socket) => {
      socket.write(head(201, 1 << 30))
      const block = Buffer.alloc(1 << 16, ' ')
      const pour = () => {
        while (!socket.destroyed && socket.write(block));
      }
      socket.on('drain', pour)
      pour()
    }
  },
  many_headers: {
    served: true,
    give: (socket) =>
      socket.end(head(201, 2, Array.from({ length: 3000 }, (_, i) => `X-${i}: ${'y'.repeat(100)}\r\n`).join('')) + '{}')
  },
  redirect: { served: true, give: (socket) => socket.end(head(302, 0, 'Location: http://127.0.0.1:1/elsewhere\r\n')) },
  slow: {
    served: true,
    give: (socket) => {
      const text = Buffer.from(head(201, 14) + '{"id": "rs-1"}')
      let at = 0
      const timer = setInterval(() => {
        if (socket.destroyed || at >= text.length) clearInterval(timer)
        else socket.write(text.subarray(at, ++at))
      }, 1000)
    }
  },
  nothing: { served: true, give: (socket) => socket.destroy() },
  two_answers: { served: true, give: (socket) => socket.end(`${head(500, 2)}{}${head(201, 14)}{"id": "rs-1"}`) },
  retry_absurd: {
    served: false,
    give: (socket) => socket.end(head(429, 2, 'Retry-After: 99999999999999999999\r\n') + '{}')
  },
  retry_negative: { served: false, give: (socket) => socket.end(head(503, 2, 'Retry-After: -5\r\n') + '{}') },
  retry_words: { served: false, give: (socket) => socket.end(head(429, 2, 'Retry-After: soon\r\n') + '{}') }
}

export class Door {
  constructor(shopPort) {
    Object.assign(this, { shopPort, sockets: new Set(), wanted: undefined, answer: undefined, answers: 0, requests: 0 })
  }

  async listen(port, host = '127.0.0.1') {
    this.port = port
    this.server = createServer({ allowHalfOpen: true }, (caller) => this.serve(caller))
    await new Promise((resolve, reject) => this.server.on('error', reject).listen(port, host, resolve))
  }

  // Resolves to the socket of the caller when the next request is there.
  at(place, ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        if (this.wanted === aim) this.wanted = undefined
        resolve(undefined)
      }, ms)
      const aim = {
        place,
        hit: (socket) => {
          clearTimeout(timer)
          resolve(socket)
        }
      }
      this.wanted = aim
    })
  }

  take(place) {
    if (this.wanted?.place !== place) return undefined
    const wanted = this.wanted
    this.wanted = undefined
    return wanted
  }

  serve(caller) {
    const shop = connect({ port: this.shopPort, host: '127.0.0.1', allowHalfOpen: true })
    let busy = false
    let lie // the answer that is given instead
    let rest = Buffer.alloc(0)
    let answer = Buffer.alloc(0) // the answer of the shop, while another answer is to be given
    let left = -1 // bytes of the answer's body that are still to come; -1 until its head is complete
    const end = () => {
      caller.destroy()
      shop.destroy()
      this.sockets.delete(caller)
    }
    this.sockets.add(caller)
    for (const socket of [caller, shop]) socket.on('error', end).on('close', end).on('end', end)
    caller.on('data', (bytes) => {
      if (!busy) {
        busy = true
        this.requests++
        left = -1
        rest = Buffer.alloc(0)
        answer = Buffer.alloc(0)
        lie = this.answer?.(bytes)
        if (lie) this.answers++
        if (lie && !lie.served) {
          lie.give(caller)
          return
        }
        this.take('received')?.hit(caller)
      }
      if (!lie || lie.served) shop.write(bytes)
    })
    shop.on('data', (bytes) => {
      if (left < 0) {
        rest = Buffer.concat([rest, bytes])
        const at = rest.indexOf('\r\n\r\n')
        if (at >= 0)
          left =
            Number(/content-length: *(\d+)/i.exec(rest.toString('latin1', 0, at))?.[1] ?? Infinity) -
            (rest.length - at - 4)
      } else {
        left -= bytes.length
      }
      const over = left === 0
      if (lie) answer = Buffer.concat([answer, bytes])
      // A refusal is passed on as it is. A 200 when nothing happened would rightly be believed.
      if (over && lie && Number(answer.toString('latin1', 9, 12)) >= 400) {
        lie = undefined
        bytes = answer
      }
      if (over && lie) {
        shop.removeAllListeners('close').removeAllListeners('end')
        shop.destroy()
        lie.give(caller)
        return
      }
      if (lie) return
      const held = over && this.take('effect')
      if (held) {
        held.hit(caller)
        setTimeout(end, 50)
        return
      }
      caller.write(bytes)
      if (over) {
        busy = false
        this.take('reply')?.hit(caller)
      }
    })
  }

  close() {
    for (const socket of this.sockets) socket.destroy()
    this.server.close()
  }
}

// Finds the engine at the other end of this socket, in the kernel's own tables.
export function ownerOf(socket, engines) {
  const port = socket.remotePort
  if (!port) return undefined
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const line = readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .find((text) => text.split(/\s+/)[2]?.endsWith(`:${hex}`) && text.split(/\s+/)[4] === '01')
  const inode = line?.split(/\s+/)[10]
  if (!inode || inode === '0') return undefined
  return engines.find((engine) => {
    try {
      return readdirSync(`/proc/${engine.child.pid}/fd`).some((fd) => {
        try {
          return readlinkSync(`/proc/${engine.child.pid}/fd/${fd}`) === `socket:[${inode}]`
        } catch {
          return false
        }
      })
    } catch {
      return false
    }
  })
}
