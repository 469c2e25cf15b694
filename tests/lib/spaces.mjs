// Network namespaces, each with a wire to the machine: for processes that must be cut off from the others. Only root
// can make them. The next test removes what a killed one has left.
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { promisify } from 'node:util'
import { has, isRoot } from './programs.mjs'

const block = `10.${100 + (process.pid % 100)}` // two tests on one machine do not meet

const ip = (...args) => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' })
const quietly = (act) => {
  try {
    act()
  } catch {
    /* it is not there */
  }
}
const quiet = (...args) => quietly(() => ip(...args))

export function whyNoSpaces() {
  if (!isRoot()) return 'only root can make network namespaces'
  if (!has('ip') || !has('iptables')) return 'ip or iptables is not installed (iproute2, iptables)'
  const [space, one, other] = ['', '0', '1'].map((end) => `sagad${process.pid}t${end}`)
  try {
    ip('netns', 'add', space)
    ip('link', 'add', one, 'type', 'veth', 'peer', 'name', other)
    ip('link', 'del', one)
    return undefined
  } catch (error) {
    return `network namespaces are not permitted here: ${String(error.stderr ?? error).trim()}`
  } finally {
    quiet('netns', 'del', space)
  }
}

export class Spaces {
  // `prefix` begins the name of each namespace; `wire` that of each of its interfaces, at most four letters.
  constructor(prefix, wire) {
    Object.assign(this, { prefix, wire: `${wire}${process.pid % 100000}`, block, all: [], addresses: [] })
    this.removeStale()
    process.on('exit', () => this.removeAll())
  }

  // Gives the machine an address that every namespace reaches.
  addAddress(address) {
    quiet('addr', 'add', `${address}/32`, 'dev', 'lo')
    this.addresses.push(address)
  }

  // A namespace at the end of its own wire. Returns {space, wire, here, there}: names, and the addresses of both ends.
  add(number) {
    const made = this.make(number, `${block}.${number}.2`)
    const here = `${block}.${number}.1`
    ip('addr', 'add', `${here}/30`, 'dev', made.wire)
    ip('-n', made.space, 'addr', 'add', `${made.there}/30`, 'dev', `${made.wire}p`)
    ip('-n', made.space, 'route', 'add', 'default', 'via', here)
    return { ...made, here }
  }

  // A namespace on a switch with the others that were added so: they reach each other, too.
  addSwitched(number) {
    const made = this.make(number, `${block}.254.${number + 1}`)
    const here = `${block}.254.254`
    if (!this.hub) {
      this.hub = `${this.wire}h`
      ip('link', 'add', this.hub, 'type', 'bridge')
      ip('addr', 'add', `${here}/24`, 'dev', this.hub)
      ip('link', 'set', this.hub, 'up')
    }
    ip('link', 'set', made.wire, 'master', this.hub)
    ip('-n', made.space, 'addr', 'add', `${made.there}/24`, 'dev', `${made.wire}p`)
    return { ...made, here }
  }

  make(number, there) {
    const space = `${this.prefix}${process.pid}-${number}`
    const wire = `${this.wire}-${number}`
    ip('netns', 'add', space)
    this.all.push({ space, wire })
    ip('link', 'add', wire, 'type', 'veth', 'peer', 'name', `${wire}p`)
    ip('link', 'set', `${wire}p`, 'netns', space)
    ip('link', 'set', wire, 'up')
    ip('-n', space, 'link', 'set', `${wire}p`, 'up')
    ip('-n', space, 'link', 'set', 'lo', 'up')
    return { space, wire, there }
  }

  // Adds a rule in the namespace, which takes the rule with it when it ends.
  rule({ space }, action, ...rule) {
    return promisify(execFile)('ip', ['netns', 'exec', space, 'iptables', '-w', action, ...rule], { timeout: 10000 })
  }

  // Drops what comes from and goes to the address, or everything, without telling either side. Taking the link down
  // would also remove its route, and another route might answer. Processes of one namespace still hear each other.
  async cut(place, address) {
    const [to, from] = address
      ? [
          ['-d', address],
          ['-s', address]
        ]
      : [[], []]
    await this.rule(place, '-A', 'OUTPUT', ...to, '!', '-o', 'lo', '-j', 'DROP')
    await this.rule(place, '-A', 'INPUT', ...from, '!', '-i', 'lo', '-j', 'DROP')
  }

  async heal(place) {
    await this.rule(place, '-F', 'INPUT').catch(() => {})
    await this.rule(place, '-F', 'OUTPUT').catch(() => {})
  }

  removeStale() {
    if (!existsSync('/run/netns')) return
    for (const name of readdirSync('/run/netns')) {
      const pid = new RegExp(`^${this.prefix}(\\d+)-`).exec(name)?.[1]
      if (!pid || existsSync(`/proc/${pid}`)) continue
      for (const left of ip('netns', 'pids', name).split('\n').filter(Boolean))
        quietly(() => process.kill(left, 'SIGKILL'))
      quiet('netns', 'del', name)
    }
  }

  removeAll() {
    for (const { space, wire } of this.all.splice(0)) {
      quiet('netns', 'del', space)
      quiet('link', 'del', wire)
    }
    for (const address of this.addresses.splice(0)) quiet('addr', 'del', `${address}/32`, 'dev', 'lo')
    if (this.hub) quiet('link', 'del', this.hub)
    this.hub = undefined
  }
}
