// Draws a flame graph, which shows where the time of a program goes. Each function is as wide as its share, and the
// functions that it called are on top of it.

const width = 1200
const rowHeight = 17
const top = 52
const narrowest = 0.4 // pixels; a thinner bar is counted but not drawn

// Reads the output of `perf script -F ip,sym`: for each sample its functions from the innermost outwards, then an empty
// line.
export function tree(text) {
  const root = { name: 'all', samples: 0, inner: new Map() }
  for (const sample of text.split(/\n\s*\n/)) {
    const frames = sample
      .split('\n')
      .map((line) => /^\s*[0-9a-f]+ (.+?)\s*$/.exec(line)?.[1])
      .filter(Boolean)
      .reverse()
    if (frames.length === 0) continue
    let at = root
    root.samples++
    for (const name of frames) {
      if (!at.inner.has(name)) at.inner.set(name, { name, samples: 0, inner: new Map() })
      at = at.inner.get(name)
      at.samples++
    }
  }
  return root
}

const depthOf = (node) => 1 + Math.max(0, ...[...node.inner.values()].map(depthOf))
const escape = (text) => text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c])

// Returns the colour of a function, which is the same everywhere.
function colour(name) {
  let hash = 0
  for (const c of name) hash = (hash * 31 + c.codePointAt(0)) % 997
  return `hsl(${10 + (hash % 45)} ${70 + (hash % 20)}% ${62 + (hash % 12)}%)`
}

export function flame(title, root) {
  const depth = depthOf(root)
  const height = top + depth * rowHeight + 12
  const boxes = []
  const draw = (node, x, level) => {
    const w = (width * node.samples) / root.samples
    if (w < narrowest) return
    const y = height - 12 - (level + 1) * rowHeight
    const fits = Math.floor((w - 6) / 6.6)
    const label = fits < 3 ? '' : node.name.length > fits ? `${node.name.slice(0, fits - 1)}…` : node.name
    const share = ((100 * node.samples) / root.samples).toFixed(1)
    boxes.push(
      `<g><title>${escape(node.name)}: ${share} %, ${node.samples} samples</title><rect x="${x.toFixed(1)}" y="${y}"
        width="${Math.max(0.3, w - 0.4).toFixed(1)}" height="${rowHeight - 1}" fill="${colour(node.name)}"/>` +
        `${label && `<text x="${(x + 3).toFixed(1)}" y="${y + 12}">${escape(label)}</text>`}</g>`
    )
    let from = x
    for (const inner of [...node.inner.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      draw(inner, from, level + 1)
      from += (width * inner.samples) / root.samples
    }
  }
  draw(root, 0, 0)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"
    font-family="monospace" font-size="11">
<rect width="100%" height="100%" fill="#fff"/>
<text x="12" y="22" font-family="sans-serif" font-size="16" font-weight="bold">${escape(title)}</text>
<text x="12" y="40" font-family="sans-serif" font-size="12" fill="#666">${root.samples} samples; as wide as its share,
callees on top; hold the pointer over a box</text>
${boxes.join('\n')}
</svg>
`
}
