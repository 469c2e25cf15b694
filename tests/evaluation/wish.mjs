// What a user wants, and what the agent that serves the wish will do wrong. All of it comes from the seed and the
// number of the wish, nothing from timing: the same seed makes the same agents.

// Gives a number in [0, 1) for each label, and always the same one.
export function luckOf(seed, number) {
  return (label) => {
    let h = 0x811c9dc5
    for (const char of `${seed}/${number}/${label}`) h = Math.imul(h ^ char.codePointAt(0), 0x01000193)
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
    return ((h ^ (h >>> 16)) >>> 0) / 4294967296
  }
}

const pick = (luck, table) => {
  let at = luck * Object.values(table).reduce((sum, weight) => sum + weight, 0)
  for (const [name, weight] of Object.entries(table)) {
    if (at < weight) return name
    at -= weight
  }
  return Object.keys(table)[0]
}

// The shop as it is, and the tools that fit it (schema/examples/registry.json).
export const shops = {
  keys: { settings: { keys: 'honour', status: 'by-key' }, tool: (name) => name, says: 'a shop that honours keys' },
  'ignores-keys': {
    settings: { keys: 'ignore', status: 'by-key' },
    tool: (name) => `${name}_checked`,
    says: 'a shop that ignores keys and can be asked'
  },
  blind: {
    settings: { keys: 'ignore', status: 'none' },
    tool: (name) => `${name}_once`,
    says: 'a shop with neither keys nor a status read'
  }
}

export function wishOf(seed, number, shop) {
  const luck = luckOf(seed, number)
  const id = `wish-${seed}-${number}`
  const kind = pick(luck('kind'), { buy: 70, single: 18, bypass: 12 })
  const amount = 1 + Math.floor(luck('amount') * 2000)
  const trouble = pick(luck('trouble'), { none: 84, 'out of stock': 4, declined: 6, bounces: 6 })
  const tagged = kind === 'buy' && luck('tag') < 0.3
  const steps = {
    track: { step: 'track', tool: 'shipping.track', args: { shipment: id }, kind: null, polls: 5 },
    look: { step: 'look', tool: 'catalog.price', args: { sku: 'kettle' }, kind: null },
    tag: {
      step: 'tag',
      tool: 'customers.tag',
      args: { request: id, customer: `${id}-customer`, tag: 'vip' },
      kind: 'tag'
    },
    reserve: {
      step: 'reserve',
      tool: shops[shop].tool('stock.reserve'),
      kind: 'reserve',
      args: { request: id, sku: trouble === 'out of stock' ? 'none' : 'kettle', qty: 1, memo: 'please' }
    },
    charge: {
      step: 'charge',
      tool: shops[shop].tool('cards.charge'),
      kind: 'charge',
      args: {
        request: id,
        amount,
        currency: 'EUR',
        customer: trouble === 'declined' ? 'declined' : `${id}-customer`,
        memo: 'for the kettle'
      }
    },
    mail: {
      step: 'mail',
      tool: shops[shop].tool('mail.notify'),
      kind: 'mail',
      args: {
        request: id,
        to: trouble === 'bounces' ? `bounce@${id}.example` : `${id}@x.example`,
        subject: `Your order ${id}`,
        memo: 'hello'
      }
    }
  }
  const wish = {
    number,
    seed,
    shop,
    id,
    kind,
    trouble,
    luck,
    named: luck('named') < 0.7, // otherwise the step is implicit: ~TOOL
    scope: luck('scope') < 0.3 ? id : undefined,
    forgetful: luck('forgetful') * 0.35, // how often an answer is not heard
    crowd: luck('crowd') < 0.4 ? 2 + Math.floor(luck('crowd size') * 3) : 1, // the count of sub-agents at the same duty
    crashes: luck('crashes') < 0.3 ? 1 + Math.floor(luck('crash count') * 2) : 0,
    replans: luck('replans') < 0.3 ? 1 + Math.floor(luck('replan count') * 2) : 0,
    repeats: luck('repeats') * 0.4, // how often a call that succeeded is made again
    paraphrases: kind !== 'bypass' && luck('paraphrases') < 0.6,
    obsessed: luck('obsessed') < 0.06, // the agent goes round in a circle until somebody stops it
    tagBefore: tagged && luck('tag before') < 0.5
  }
  if (kind === 'buy') {
    wish.steps = [
      ...(luck('look') < 0.3 ? [steps.look] : []),
      ...(tagged ? [steps.tag] : []),
      steps.reserve,
      steps.charge,
      ...(luck('track') < 0.15 ? [steps.track] : []),
      steps.mail
    ]
    // A torn agent completes and aborts at once.
    wish.fate = pick(luck('fate'), { complete: 68, abort: 18, vanish: 8, torn: 6 })
    wish.turnsBackAt = Math.floor(luck('turns back') * wish.steps.length) // the step before which it aborts or vanishes
    wish.deadline = wish.fate === 'vanish' ? '4s' : '300s'
  } else {
    wish.steps = [kind === 'bypass' ? steps.charge : luck('single') < 0.5 ? steps.charge : steps.mail]
    wish.fate = 'complete'
    if (kind === 'bypass') wish.steps[0].args.customer = `${id}-customer`
  }
  wish.kinds = wish.steps.map((step) => step.kind).filter((one) => one && !(one === 'tag' && wish.tagBefore))
  return wish
}

// The same arguments as JSON text, said in another way: members in another order, 10 as 10.0 or 1e1, the currency in
// small letters, another memo, another time. No material member differs. Without `drift` even the fingerprint stays the
// same.
export function paraphrase(args, luck, drift) {
  const said = { ...args, asked_at: String(luck('asked at')) }
  if (args.memo === undefined) delete said.asked_at // a tool that knows no such member
  if (drift && said.memo !== undefined && luck('memo') < 0.6)
    said.memo = `${args.memo} (${Math.floor(luck('memo text') * 1000)})`
  if (drift && said.memo !== undefined && luck('no memo') < 0.1) delete said.memo
  if (drift && said.currency && luck('currency') < 0.5) said.currency = 'eur'
  const members = Object.entries(said).map(([name, value]) => [
    luck(`order of ${name}`),
    `${JSON.stringify(name)}${luck('space') < 0.5 ? ': ' : ':'}${inWords(value, luck(name))}`
  ])
  if (luck('order') < 0.5) members.sort((a, b) => a[0] - b[0])
  return `{${members.map((member) => member[1]).join(luck('line') < 0.3 ? ',\n  ' : ',')}}`
}

function inWords(value, luck) {
  if (typeof value !== 'number') return JSON.stringify(value)
  if (luck < 0.4) return String(value)
  if (luck < 0.6) return `${value}.0`
  if (luck < 0.8) return `${value * 10}e-1`
  return `${value / 10}e1`
}
