// What Prometheus and Grafana are told to ask for exists: each name and each label in tools/alerts, against the metrics
// of a sagad that has made a call and answered its repeat.
import { createHash } from 'node:crypto'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { World, expect, expectEqual, leaves, promise, root, run } from '../lib/world.mjs'

const place = join(root, 'tools', 'alerts')
const ofPrometheus = ['instance', 'job', 'le']

// Reads the text format into a map of each name that a query may use: its type, and the labels of its samples.
function metricsOf(text) {
  const found = new Map()
  for (const [, family, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm))
    for (const suffix of type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''])
      found.set(family + suffix, { type: type === 'histogram' ? 'counter' : type, labels: new Set(ofPrometheus) })
  for (const [, name, labels] of text.matchAll(/^(sagad_\w+)(?:\{(.*)\})? \S+$/gm))
    for (const [, label] of (labels ?? '').matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) found.get(name).labels.add(label)
  return found
}

// Returns what is wrong with a query, one sentence each.
function faultsOf(expr, metrics) {
  const names = [...new Set(expr.match(/\bsagad_\w+/g) ?? [])]
  const faults = names.filter((name) => !metrics.has(name)).map((name) => `there is no metric ${name}`)
  const known = names.filter((name) => metrics.has(name))
  for (const name of known) {
    const { type, labels } = metrics.get(name)
    const asked = [
      ...[...expr.matchAll(new RegExp(`\\b${name}\\{([^}]*)\\}`, 'g'))].flatMap(([, inside]) =>
        [...inside.matchAll(/(\w+)\s*[=!]/g)].map(([, label]) => label)
      ),
      ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, inside]) => inside.split(',').map((label) => label.trim()))
    ]
    for (const label of new Set(asked)) if (!labels.has(label)) faults.push(`${name} has no label ${label}`)
    if (new RegExp(`\\b(?:rate|increase)\\(${name}\\b`).test(expr) && type !== 'counter')
      faults.push(`${name} is a ${type}, which has no rate`)
  }
  return faults
}

await run(new World(), async (world) => {
  const rules = readFileSync(join(place, 'sagad.rules.yml'), 'utf8')
  const file = readFileSync(join(place, 'sagad.dashboard.json'), 'utf8')
  const dashboard = JSON.parse(file)
  const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
  let metrics

  await promise('the dashboard is what dashboard.mjs prints', () => {
    const printed = spawnSync(process.execPath, [join(place, 'dashboard.mjs')], { encoding: 'utf8' })
    expect(printed.stdout === file, 'run node tools/alerts/dashboard.mjs > tools/alerts/sagad.dashboard.json')
  })
  await promise('a sagad that made a call and answered its repeat', async () => {
    await world.startPostgres()
    await world.startSagad()
    await world.define({
      tools: [{ name: 'say', effect: 'keyed', key: { window: '1h' }, terminal: true, builtin: { do: 'echo' } }],
      sagas: [{ name: 'talk', steps: [{ id: 'say', call: 'say' }] }]
    })
    await world.until(await world.start('talk', {}), ['completed'])
    for (let times = 0; times < 2; times++) {
      const body = { run: 'watched', step: 'say', tool: 'say', args: {} }
      const answer = await world.calm(() => world.api('POST', '/v1/operations?wait=20s', body))
      expectEqual(answer.status, 200, `the call: ${answer.text}`)
    }
    metrics = metricsOf((await world.read('/metrics')).text)
  })
  await promise('a token of one namespace is told that it sees a part', async () => {
    const sha256 = createHash('sha256').update('a word').digest('hex')
    const tokens = join(world.directory, 'tokens.json')
    const ada = { name: 'ada', sha256, namespace: 'default', role: 'admin' }
    writeFileSync(tokens, JSON.stringify({ tokens: [ada] }), { mode: 0o600 })
    world.sagad.kill('SIGTERM')
    await world.sagad.ended
    await world.startSagad(['--tokens', tokens])
    const headers = { authorization: 'Bearer a word' }
    const { status, text } = await world.calm(() => world.api('GET', '/metrics', undefined, { headers }))
    expectEqual(status, 200, text)
    const part = metricsOf(text)
    expect(!part.has('sagad_turns_total'), 'it has no figures of the process')
    for (const [name, metric] of part) if (!metrics.has(name)) metrics.set(name, metric)
  })
  await promise('each metric and each label of the dashboard exists', () => {
    expect(queries.length > 20, 'the dashboard has queries', queries.length)
    for (const { title, expr } of queries) expectEqual(faultsOf(expr, metrics), [], `${title}: ${expr}`)
    for (const { query } of dashboard.templating.list.filter(({ type }) => type === 'query')) {
      const [, name, label] = /^label_values\((\w+), (\w+)\)$/.exec(query)
      expectEqual(faultsOf(`${name}{${label}=""}`, metrics), [], query)
    }
  })
  await promise('each metric of the alert rules exists', () => {
    const names = [...new Set(rules.match(/\bsagad_\w+/g))]
    expect(names.length > 10, 'the rules have metrics', names)
    expectEqual(
      names.flatMap((name) => faultsOf(name, metrics)),
      [],
      'the names in the rules'
    )
  })
  await promise('a wrong name, a wrong label, and the rate of a gauge are found', () => {
    for (const [expr, fault] of [
      ['sum(rate(sagad_tool_cals_total[5m]))', 'there is no metric sagad_tool_cals_total'],
      ['rate(sagad_saga_seconds[5m])', 'there is no metric sagad_saga_seconds'],
      ['sum by (saga) (sagad_tool_calls_total)', 'sagad_tool_calls_total has no label saga'],
      ['sagad_tool_calls_total{definition="x"}', 'sagad_tool_calls_total has no label definition'],
      ['rate(sagad_sagas_loaded[5m])', 'sagad_sagas_loaded is a gauge, which has no rate']
    ])
      expectEqual(faultsOf(expr, metrics), [fault], expr)
  })
  if (spawnSync('promtool', ['--version']).status === 0)
    await promise('Prometheus can read each query of the dashboard', () => {
      const path = join(world.directory, 'dashboard.rules.yml')
      const records = queries.map(({ expr }, i) => ({
        record: `dashboard:query${i}`,
        expr: expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, '.*')
      }))
      writeFileSync(path, JSON.stringify({ groups: [{ name: 'dashboard', rules: records }] }))
      const checked = spawnSync('promtool', ['check', 'rules', path], { encoding: 'utf8' })
      expectEqual(checked.status, 0, checked.stdout + checked.stderr)
    })
  else console.log('# promtool is not here: the syntax of the queries was not checked')
  await leaves(world)
})
