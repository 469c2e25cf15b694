// Prints the result as text: the figures, their costs, and the table of the bars.
const colours = process.stdout.isTTY && !process.env.NO_COLOR && process.env.TERM !== 'dumb'
const paint = (code, text) => (colours ? `\x1b[${code}m${text}\x1b[0m` : text)

// Rounds to three significant digits.
export function short(value) {
  if (!Number.isFinite(value)) return ''
  const size = Math.abs(value)
  if (size === 0) return '0'
  if (size >= 1000) return Math.round(value).toLocaleString('en')
  return size >= 100
    ? value.toFixed(0)
    : size >= 10
      ? value.toFixed(1)
      : size >= 1
        ? value.toFixed(2)
        : size >= 0.01
          ? value.toFixed(3)
          : value.toPrecision(2)
}

const ranged = (spread) =>
  spread
    ? `${short(spread.median)}${spread.rounds > 1 ? ` (${short(spread.least)} to ${short(spread.most)})` : ''}`
    : ''

// Prints a table: the first column to the left, numbers to the right, no rules between.
function print(title, rows, paintRow = () => undefined) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)))
  console.log(`\n${paint(1, title)}`)
  rows.forEach((row, index) => {
    const line = row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column] + 2)))
      .join('')
      .trimEnd()
    const colour = index === 0 ? 2 : paintRow(index - 1)
    console.log(`  ${colour ? paint(colour, line) : line}`)
  })
}

const words = { aim: 'aim', must: 'must', no: 'NOT MET' }

export function report(result) {
  const { measures, bars, machine, options } = result
  const { naive_clients: clients } = result.reference
  console.log(
    `${options.rounds} rounds of ${options.round} s, interleaved; medians and their ranges. ${machine.cores} ` +
      `cores, PostgreSQL ${machine.postgres}, ${machine.sagad}; ` +
      `(i) is fastest with ${clients} clients.`
  )
  print(
    'What was measured',
    [
      ['', 'a second', 'transitions a second', 'p50 ms', 'p95 ms', 'p99 ms', 'errors', 'come again'],
      ...measures.map(({ name, figures: f }) => [
        name,
        ranged(f.per_second),
        ranged(f.transitions_per_second),
        ...['p50', 'p95', 'p99'].map((part) =>
          short(f[`latency_ms.${part}`]?.median ?? f[`repeated.latency_ms.${part}`]?.median)
        ),
        short(f.errors?.most),
        short(f.refused?.most)
      ])
    ],
    (index) => (measures[index].figures.errors?.most > 0 ? 31 : undefined)
  )
  const costly = measures.filter(({ figures }) => figures['cpu_per_1000.both'])
  if (costly.length > 0) {
    print('What a saga costs', [
      [
        '',
        's / 1,000: engine',
        'PostgreSQL',
        'driver',
        'commits',
        'WAL bytes',
        'rows',
        'turns',
        'turns a commit',
        'engine MiB',
        'PostgreSQL MiB'
      ],
      ...costly.map(({ name, figures: f }) => [
        name,
        ...[
          'cpu_per_1000.engine',
          'cpu_per_1000.postgres',
          'cpu_per_1000.driver',
          'commits_per_saga',
          'wal_bytes_per_saga',
          'rows_per_saga',
          'turns_per_saga',
          'turns_per_batch',
          'engine_mib_peak',
          'postgres_mib'
        ].map((figure) => short(f[figure]?.median))
      ])
    ])
  }
  const { in_flight: held, parked } = result.once.asleep ?? {}
  if (parked) {
    console.log(
      `\n${paint(1, 'W6')} ${held.sagas.toLocaleString('en')} in flight hold ` +
        `${short(held.bytes_per_saga / 1024)} KiB each; ${parked.sagas.toLocaleString('en')} asleep: ` +
        `${short(parked.asleep_mib)} MiB, empty ${short(parked.empty_mib)}; parked ` +
        `${short(parked.parked_after_seconds)} s after the last start; ` +
        `idle: ${short(parked.transactions_a_minute)} transactions a minute, ${short(parked.cpu_percent)} % of a core`
    )
  }
  const { grown, killed } = result.once
  if (grown) {
    console.log(
      `\n${paint(1, 'W1')} over ${grown.sagas.toLocaleString('en')} ended sagas against empty tables, sagas a ` +
        `second: ` +
        grown.pairs.map(({ full, empty }) => `${short(full)} / ${short(empty)}`).join(', ')
    )
  }
  if (killed) {
    console.log(
      `\n${paint(1, 'SIGKILL')} with ${killed.sagas.toLocaleString('en')} unfinished sagas: shards owned ` +
        `${short(killed.owned_seconds)} s after it, the first call ${short(killed.first_call_seconds)} s later, ` +
        `all under way ${short(killed.all_seconds)} s later`
    )
  }
  print(
    'What must be reached',
    [
      ['', 'must', 'aim', 'measured', 'met'],
      ...bars.map((bar) => [
        bar.text,
        `${bar.less ? '<= ' : '>= '}${short(bar.must)}`,
        short(bar.aim),
        ranged(bar.figure),
        bar.met ? words[bar.met] : bar.note
      ])
    ],
    (index) => ({ aim: 32, no: 31 })[bars[index].met]
  )
  for (const [where, what] of result.failures) console.log(`\n${paint(31, 'failed')} ${where}: ${what}`)
}
