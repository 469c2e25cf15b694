// Reads a CSV file as `sagactl --from` does (tools/sagactl/csv.c). What cannot be read as it was meant is refused as a
// whole: half a file of a bank is no evidence.
export interface Sheet {
  head: string[]
  rows: string[][]
}

const columnsMax = 200

function* cellsOf(text: string): Generator<string[]> {
  let at = 0
  while (at < text.length) {
    const cells: string[] = []
    for (let isRow = true; isRow;) {
      if (text[at] === '"') {
        let cell = ''
        for (at++; ; at++) {
          if (at >= text.length) throw new Error('a quote is opened and never closed')
          if (text[at] === '"' && text[++at] !== '"') break // two quotes are one
          cell += text[at]
        }
        while (at < text.length && text[at] !== ',' && text[at] !== '\n') at++
        cells.push(cell)
      } else {
        const from = at
        while (at < text.length && text[at] !== ',' && text[at] !== '\n') at++
        cells.push(text.slice(from, at).trim())
      }
      isRow = text[at] === ','
      at++
    }
    yield cells
  }
}

// Fails with a sentence.
export function readSheet(text: string): Sheet {
  const [head = [], ...all] = cellsOf(text.replace(/^\uFEFF/, ''))
  const rows = all.filter((cells) => cells.length > 1 || cells[0] !== '')
  if (rows.length === 0) throw new Error('it has no row below its head')
  if (head.length > columnsMax) throw new Error('it has too many columns')
  if (new Set(head).size < head.length) throw new Error('a column stands there twice')
  const wide = rows.findIndex((cells) => cells.length > head.length)
  if (wide >= 0) throw new Error(`row ${wide + 1} has more cells than the head`)
  return { head, rows: rows.map((cells) => head.map((_, i) => cells[i] ?? '')) }
}
