// A proxy between sagad and PostgreSQL that makes a transaction of each statement: it puts a Sync behind every one.
// Proxies that split pipelines do that, and Citus' coordinator has the same effect.
import { mkdirSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { Messages } from './frames.mjs'

const sync = Buffer.from([0x53, 0, 0, 0, 4])

export class Splitter {
  constructor(world) {
    this.world = world
    this.splits = true
  }

  // Returns the connection string that leads through the proxy.
  async start() {
    const directory = join(this.world.directory, 'splitter')
    mkdirSync(directory)
    this.server = createServer((client) => this.serve(client))
    await new Promise((resolve, reject) =>
      this.server.on('error', reject).listen(join(directory, '.s.PGSQL.5432'), resolve)
    )
    this.server.unref()
    return this.world.dsn.replace(`host=${this.world.directory}`, `host=${directory}`)
  }

  serve(client) {
    const server = connect(join(this.world.directory, '.s.PGSQL.5432'))
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
