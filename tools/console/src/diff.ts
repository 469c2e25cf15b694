// What changed between two texts, line by line: the longest lines that both have in the same order stay.
export interface Line {
  kind: 'same' | 'gone' | 'new'
  text: string
}

export function diffLines(before: string, after: string): Line[] {
  const a = before.split('\n')
  const b = after.split('\n')
  // common[i][j]: how many lines a[i..] and b[j..] have in common
  const common = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1])
  const lines: Line[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i] })
      i++
      j++
    } else if (j >= b.length || (i < a.length && common[i + 1][j] >= common[i][j + 1]))
      lines.push({ kind: 'gone', text: a[i++] })
    else lines.push({ kind: 'new', text: b[j++] })
  }
  return lines
}
