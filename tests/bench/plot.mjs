// Draws the result as SVG pictures. They are written by hand, because they only need bars and lines with ends.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { short } from './report.mjs'

const width = 1000
const left = 430
const right = 120
const rowHeight = 26
const top = 64

const escape = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c])
const text = (x, y, what, more = '') => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escape(what)}</text>`
const box = (x, y, w, h, fill) =>
  `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${Math.max(0, w).toFixed(1)}" height="${h}" fill="${fill}"/>`
const line = (x1, y1, x2, y2, more = '') =>
  `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" stroke="#333"
    ${more}/>`

function picture(title, subtitle, rows, draw) {
  const height = top + rows.length * rowHeight + 24
  const body = rows.map((row, index) => {
    const y = top + index * rowHeight
    return text(left - 10, y + 17, row.name, 'text-anchor="end"') + draw(row, y)
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"
    font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${text(16, 24, title, 'font-size="16" font-weight="bold"')}
${text(16, 44, subtitle, 'fill="#666"')}
${body.join('\n')}
</svg>
`
}

const log10 = Math.log10

// Scales by powers of ten, because the compared values are far apart.
function scale(values) {
  const shown = values.filter((value) => value > 0)
  const [low, high] = [Math.floor(log10(Math.min(...shown))), Math.ceil(log10(Math.max(...shown)) + 1e-9)]
  const span = Math.max(1, high - low)
  return (value) => left + (width - left - right) * Math.min(1, Math.max(0, (log10(value) - low) / span))
}

const range = (at, spread, y) =>
  spread.rounds > 1
    ? line(at(spread.least), y + 12, at(spread.most), y + 12) +
      line(at(spread.least), y + 8, at(spread.least), y + 16) +
      line(at(spread.most), y + 8, at(spread.most), y + 16)
    : ''

function rates(result) {
  const rows = result.measures
    .filter(({ figures }) => figures.per_second?.median > 0)
    .map((one) => ({ ...one, spread: one.figures.per_second }))
  if (rows.length === 0) return undefined
  const at = scale(rows.flatMap(({ spread }) => [spread.least, spread.most]))
  return picture(
    'A second',
    'sagas, acknowledgements, calls; of the references transactions and rows. Median, range of the rounds, logarithmic',
    rows,
    ({ workload, spread }, y) =>
      box(left, y + 4, at(spread.median) - left, 16, workload === 'ref' ? '#b8b8b8' : '#4a7fb5') +
      range(at, spread, y) +
      text(at(Math.max(spread.median, spread.most)) + 6, y + 17, short(spread.median))
  )
}

function reached(result) {
  const rows = result.bars.filter((bar) => bar.figure?.median > 0).map((bar) => ({ ...bar, name: bar.text }))
  if (rows.length === 0) return undefined
  // Compares each figure with its own bar; further to the right is better.
  const part = (bar, value) => Math.min(50, Math.max(0.02, bar.less ? bar.must / value : value / bar.must))
  const at = scale([
    ...rows.flatMap((bar) => [part(bar, bar.figure.least), part(bar, bar.figure.most), part(bar, bar.aim)]),
    1
  ])
  const fill = { aim: '#3c8d4f', must: '#8fbf6a', no: '#c0504d' }
  return picture(
    'Against the bars',
    'times as good as must be; the line is the bar, the dashed one the aim. Logarithmic',
    rows,
    (bar, y) => {
      const median = at(part(bar, bar.figure.median))
      return (
        box(left, y + 4, median - left, 16, fill[bar.met] ?? '#b8b8b8') +
        line(at(1), y + 1, at(1), y + 23, 'stroke-width="2"') +
        line(at(part(bar, bar.aim)), y + 1, at(part(bar, bar.aim)), y + 23, 'stroke-dasharray="3 2"') +
        text(Math.max(median, at(part(bar, bar.aim))) + 6, y + 17, short(bar.figure.median))
      )
    }
  )
}

function latencies(result) {
  const rows = result.measures.filter(({ figures }) => figures['latency_ms.p50']?.median > 0)
  if (rows.length === 0) return undefined
  const of = ({ figures }, part) => figures[`latency_ms.${part}`].median
  const at = scale(rows.flatMap((row) => [of(row, 'p50'), of(row, 'p99')]))
  return picture(
    'Latency, ms',
    'p50, p95, p99, medians of the rounds, logarithmic. Only the open loop says what a client sees who does not ' +
      'wait for the service',
    rows,
    (row, y) =>
      line(at(of(row, 'p50')), y + 12, at(of(row, 'p99')), y + 12) +
      ['p50', 'p95', 'p99']
        .map(
          (part, index) =>
            `<circle cx="${at(of(row, part)).toFixed(1)}" cy="${y + 12}" r="5"
              fill="${['#4a7fb5', '#e0a030', '#c0504d'][index]}"/>`
        )
        .join('') +
      text(
        at(of(row, 'p99')) + 10,
        y + 17,
        `${short(of(row, 'p50'))} / ${short(of(row, 'p95'))} / ${short(of(row, 'p99'))}`
      )
  )
}

function processor(result) {
  const rows = result.measures
    .filter(({ figures }) => figures['cpu_per_1000.both']?.median > 0)
    .filter(({ id }) => id !== 'w4') // a saga of a hundred steps would hide all others
  if (rows.length === 0) return undefined
  const parts = ['engine', 'postgres', 'driver']
  const most = Math.max(
    ...rows.map(({ figures }) => parts.reduce((sum, part) => sum + (figures[`cpu_per_1000.${part}`]?.median ?? 0), 0))
  )
  return picture(
    'Processor seconds per 1,000 sagas',
    'blue the engine, grey PostgreSQL, light the load driver; W4, a hundred steps a saga, left out',
    rows,
    ({ figures }, y) => {
      let x = left
      const drawn = parts.map((part, index) => {
        const w = ((width - left - right) * (figures[`cpu_per_1000.${part}`]?.median ?? 0)) / most
        x += w
        return box(x - w, y + 4, w, 16, ['#4a7fb5', '#8c8c8c', '#dcdcdc'][index])
      })
      return drawn.join('') + text(x + 6, y + 17, short(figures['cpu_per_1000.both'].median))
    }
  )
}

// Returns the names of the files.
export function plots(result, folder) {
  const drawn = {
    rates: rates(result),
    bars: reached(result),
    latency: latencies(result),
    processor: processor(result)
  }
  return Object.entries(drawn)
    .filter(([, svg]) => svg)
    .map(([name, svg]) => {
      writeFileSync(join(folder, `${name}.svg`), svg)
      return `${name}.svg`
    })
}
