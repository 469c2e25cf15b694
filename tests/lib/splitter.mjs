// A proxy between sagad and PostgreSQL that makes a transaction of each statement: it puts a Sync behind every one.
// Proxies that split pipelines do that, and Citus' coordinator has the same effect.
import { Messages } from './frames.mjs'
import { SocketProxy } from './socket_proxy.mjs'

const sync = Buffer.from([0x53, 0, 0, 0, 4])

export class Splitter extends SocketProxy {
  constructor(world) {
    super(world, 'splitter')
    this.splits = true
  }

  serve(client) {
    const server = this.connect()
    const fromClient = new Messages(true)
    const fromServer = new Messages(false)
    const asked = ['client'] // who asked for each coming ReadyForQuery; the first one answers the startup message
    const end = () => {
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
    client.on('data', (bytes) => {
      for (const [type, , message] of fromClient.take(bytes)) {
        server.write(message)
        if (type === 'S' || type === 'Q') asked.push('client')
        if (type === 'E' && this.splits) {
          server.write(sync)
          asked.push('proxy')
        }
      }
    })
    server.on('data', (bytes) => {
      for (const [type, , message] of fromServer.take(bytes)) {
        if (type === 'Z' && asked.shift() === 'proxy') continue
        client.write(message)
      }
    })
  }
}
