// All faults by name, and why a fault is impossible on this machine.
import { answers } from './faults/answers.mjs'
import { clients } from './faults/clients.mjs'
import { clock } from './faults/clock.mjs'
import { cut, drop, freeze, hold, refuse } from './faults/connections.mjs'
import { disk_full } from './faults/disk.mjs'
import { failover, standby_lost } from './faults/failover.mjs'
import { kill, kill_all } from './faults/kill.mjs'
import { half_open, partition, shop_away, vanish } from './faults/network.mjs'
import { restart, terminate } from './faults/postgres.mjs'
import { stop } from './faults/stop.mjs'

export const allFaults = [
  kill,
  kill_all,
  stop,
  restart,
  terminate,
  cut,
  drop,
  hold,
  freeze,
  refuse,
  answers,
  clients,
  failover,
  standby_lost,
  partition,
  half_open,
  vanish,
  shop_away,
  disk_full,
  clock
]

// Returns undefined for a possible fault.
export function whyNot(fault) {
  return fault.impossible?.()
}
