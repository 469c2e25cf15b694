// The options of the campaign.
import { parseArgs } from 'node:util'

// Returns the minutes that the environment sets; four minutes by hand.
function defaultMinutes() {
  const env = process.env
  return Number(
    env.SAGAD_CAMPAIGN_MINUTES ??
      (env.SAGAD_TEST_LONG === '1' ? env.SAGAD_CAMPAIGN_LONG : env.SAGAD_CAMPAIGN_SHORT) ??
      4
  )
}

export function parseOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      faults: { type: 'string' },
      minutes: { type: 'string' },
      count: { type: 'string' },
      sagas: { type: 'string' },
      seed: { type: 'string' },
      json: { type: 'string' },
      engines: { type: 'string' },
      rate: { type: 'string' },
      backlog: { type: 'string' },
      round: { type: 'string' },
      keep: { type: 'string' },
      list: { type: 'boolean' },
      'go-on': { type: 'boolean' }
    }
  })
  const number = (name, otherwise) => {
    const value = values[name] === undefined ? otherwise : Number(values[name])
    if (values[name] !== undefined && !(value > 0))
      throw new Error(`--${name} takes a number above 0, not ${values[name]}`)
    return value
  }
  const counts =
    values.count &&
    new Map(
      values.count.split(',').map((part) => {
        const [name, count] = part.split('=')
        if (!(Number(count) > 0)) throw new Error(`--count takes FAULT=NUMBER,..., not ${part}`)
        return [name, Number(count)]
      })
    )
  return {
    faults: values.faults?.split(','),
    counts,
    minutes: number('minutes', counts ? undefined : defaultMinutes()),
    sagas: number('sagas', 0),
    seed: number('seed', Number(process.env.SAGAD_TEST_SEED ?? 1 + (Date.now() % 1000000))),
    json: values.json,
    engines: number('engines', 3),
    rate: number('rate', 120),
    backlog: number('backlog', 500),
    roundSeconds: number('round', 120),
    keep: values.keep,
    list: values.list,
    goOn: values['go-on']
  }
}
