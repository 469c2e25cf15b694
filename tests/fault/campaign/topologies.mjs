// The world that each group of faults needs.
import { CampaignWorld } from './world.mjs'
import { ClockWorld } from './world_clock.mjs'
import { DiskWorld } from './world_disk.mjs'
import { NetWorld } from './world_net.mjs'
import { PairWorld } from './world_pair.mjs'

const worlds = { plain: CampaignWorld, pair: PairWorld, net: NetWorld, disk: DiskWorld, clock: ClockWorld }

export function worldOf(topology, random, options) {
  const world = new worlds[topology](random, { engineCount: options.engines })
  world.topology = topology
  return world
}
