// Reads the options of tools/bench. As a program it only checks, before anything is built, whether the benchmark can
// run.
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const workloads = ['W1', 'W2', 'W3', 'W4', 'W5', 'W6', 'W7', 'mcp', 'two', 'retention', 'traces', 'kill']

export function options() {
  try {
    const { values } = parseArgs({
      options: {
        round: { type: 'string', default: '60' },
        rounds: { type: 'string', default: '3' },
        workloads: { type: 'string', default: workloads.join() },
        ended: { type: 'string', default: '0' },
        unfinished: { type: 'string', default: '100000' },
        sleeping: { type: 'string', default: '100000' },
        sagad: { type: 'string', default: '' },
        profile: { type: 'boolean', default: false },
        out: { type: 'string', default: 'build/bench' }
      }
    })
    const number = (name, least) => {
      const value = Number(values[name])
      if (!Number.isInteger(value) || value < least) throw new Error(`--${name} takes a whole number from ${least} on`)
      return value
    }
    const chosen = values.workloads.split(',').filter(Boolean)
    const unknown = chosen.find((one) => !workloads.includes(one))
    if (unknown || chosen.length === 0) throw new Error(`--workloads takes some of ${workloads.join()}`)
    return {
      round: number('round', 1),
      rounds: number('rounds', 1),
      workloads: chosen,
      ended: number('ended', 0),
      sleeping: number('sleeping', 100),
      unfinished: number('unfinished', 100),
      sagad: values.sagad.split(' ').filter(Boolean),
      profile: values.profile,
      out: resolve(values.out)
    }
  } catch (error) {
    console.error(`bench: ${error.message}; see tools/bench --help`)
    process.exit(2)
  }
}

if (resolve(process.argv[1]) === fileURLToPath(import.meta.url)) options()
