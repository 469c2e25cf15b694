// Engines whose wall clocks can be moved one by one, with tests/fault/clock_shim.c, which is loaded before everything
// else.
import { closeSync, existsSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { CampaignWorld } from './world.mjs'

export function whyNoClock() {
  const path = process.env.SAGAD_CLOCK_SHIM
  return path && existsSync(path) ? undefined : 'SAGAD_CLOCK_SHIM does not name the shim (tests/fault/clock_shim.c)'
}

export class ClockWorld extends CampaignWorld {
  async makeEngine(number) {
    const engine = await super.makeEngine(number)
    engine.clock = join(this.directory, `clock-${number}`)
    this.setClock(engine, 0)
    engine.env = {
      LD_PRELOAD: process.env.SAGAD_CLOCK_SHIM,
      CLOCK_SHIM_FILE: engine.clock,
      ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:verify_asan_link_order=0`
    }
    return engine
  }

  setClock(engine, ms) {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(Math.round(ms)) * 1000000n)
    const file = openSync(engine.clock, existsSync(engine.clock) ? 'r+' : 'w')
    writeSync(file, bytes, 0, 8, 0)
    closeSync(file)
    engine.clockMs = ms
  }
}
