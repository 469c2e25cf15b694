// A proxy on a socket between sagad and the PostgreSQL of a world. A class that extends it serves each client.
import { mkdirSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'

const socket = '.s.PGSQL.5432'

export class SocketProxy {
  constructor(world, name) {
    this.world = world
    this.name = name
  }

  // Returns the connection string that leads through the proxy.
  async start() {
    const directory = join(this.world.directory, this.name)
    mkdirSync(directory)
    this.server = createServer((client) => this.serve(client))
    await new Promise((resolve, reject) => this.server.on('error', reject).listen(join(directory, socket), resolve))
    this.server.unref()
    return this.world.dsn.replace(`host=${this.world.directory}`, `host=${directory}`)
  }

  // Connects to PostgreSQL itself.
  connect() {
    return connect(join(this.world.directory, socket))
  }
}
