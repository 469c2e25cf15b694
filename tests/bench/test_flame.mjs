// The flame graph of some samples.
import { expect, promise, run } from '../lib/world.mjs'
import { flame, tree } from './flame.mjs'

// The innermost function comes first, as perf prints it.
const samples = `
    55d0 turn_begin
    55d1 loop_run
    55d2 main

    55d0 turn_begin
    55d1 loop_run
    55d2 main

        7f00 operator<(a, b)
        55d2 main

    55d2 main
`

await run({ showLogs() {}, stop() {} }, async () => {
  const root = tree(samples)
  await promise('samples with the same callers are one box, as wide as they are many', () => {
    const main = root.inner.get('main')
    expect(root.samples === 4 && main.samples === 4, 'all of them under main', root)
    expect(main.inner.get('loop_run').inner.get('turn_begin').samples === 2, 'two in the turn', main)
    expect(main.inner.size === 2, 'two callees', [...main.inner.keys()])
  })
  const svg = flame('a <title>', root)
  await promise('each box tells its share, and lies on its caller', () => {
    expect(svg.startsWith('<svg ') && svg.trimEnd().endsWith('</svg>'), 'an SVG', svg.slice(0, 80))
    expect(svg.includes('<title>turn_begin: 50.0 %, 2 samples</title>'), 'its share', svg)
    const y = (name) => Number(new RegExp(`<title>${name}: [^<]*</title><rect x="[\\d.]+" y="(\\d+)"`).exec(svg)?.[1])
    expect(y('turn_begin') < y('loop_run') && y('loop_run') < y('main'), 'on top of each other', [
      y('turn_begin'),
      y('loop_run'),
      y('main')
    ])
  })
  await promise('names and the title cannot break it', () => {
    expect(
      svg.includes('operator&lt;(a, b)') && svg.includes('a &lt;title&gt;') && !svg.includes('operator<'),
      'escaped',
      svg
    )
  })
})
