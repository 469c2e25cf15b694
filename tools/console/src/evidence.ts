// Evidence from a file: its rows say of each case what is true, as the file of a bank does. Which column names the saga
// is proposed from the cases that are open; what a word means is said by the person, and never guessed.
import { Problem, query, read } from './api'
import { caseVerbs, type CaseVerb } from './caseverbs'
import { readSheet, type Sheet } from './csv'
import type { Definition, Escalation, Page } from './types'

export const verdicts = caseVerbs.filter(({ action }) => action === 'resolve')
export const leftOut = 'left out'

const casesMax = 20_000 // as many as one job may have
const pageCases = 500
export const wordsMax = 12 // that a column of verdicts may have

// The open cases that the rows may be about, by what a row can name them.
export interface OpenCases {
  byName: Map<string, string[]> // business id, or key of the operation -> keys of operations
  count: number
}

export async function readOpenCases(filter: Record<string, string>): Promise<OpenCases> {
  const byName = new Map<string, string[]>()
  const put = (name: string | null | undefined, key: string) => {
    if (name) byName.set(name, [...(byName.get(name) ?? []), key])
  }
  let count = 0
  let cursor: string | null = null
  do {
    const page: Page<Escalation> = await read<Page<Escalation>>(
      query('v1/escalations', { ...filter, status: 'open', limit: pageCases, cursor })
    )
    for (const { business_id, operation } of page.items) {
      if (!operation) continue
      put(business_id, operation)
      put(operation, operation)
      count++
    }
    cursor = page.next_cursor
    if (count > casesMax)
      throw new Problem(422, 'Too many cases for one file', 'Choose the cases of one tool, or of some hours.')
  } while (cursor)
  return { byName, count }
}

// The members of a tool's result, which a later step may need of what happened.
export async function readResultMembers(tool: string | undefined): Promise<string[]> {
  if (!tool) return []
  const { body } = await read<Definition>(`v1/tools/${encodeURIComponent(tool)}`)
  const result = body?.result
  return result && typeof result === 'object' && !Array.isArray(result) ? Object.keys(result) : []
}

// What a person has said about the file; -1: no column.
export interface Reading {
  name: string
  sheet: Sheet
  nameColumn: number
  wordColumn: number
  meanings: Record<string, string> // word -> place in `verdicts`, or leftOut
  members: Record<string, number> // member of the result -> column
}

export const wordsOf = ({ sheet, wordColumn }: Reading) => {
  const counts = new Map<string, number>()
  if (wordColumn >= 0) for (const row of sheet.rows) counts.set(row[wordColumn], (counts.get(row[wordColumn]) ?? 0) + 1)
  counts.delete('') // an empty cell is no verdict
  return counts
}

const largest = (numbers: number[]) => numbers.indexOf(Math.max(...numbers))

function columnOfNames({ head, rows }: Sheet, { byName }: OpenCases) {
  const found = head.map((_, i) => rows.filter((row) => byName.has(row[i])).length)
  const most = largest(found)
  return found[most] > 0 ? most : -1
}

function columnOfWords({ head, rows }: Sheet, nameColumn: number) {
  const words = head.map((_, i) => new Set(rows.map((row) => row[i])).size)
  const mayBe = (i: number) => i !== nameColumn && words[i] <= wordsMax && words[i] > 1
  const named = head.findIndex((name, i) => mayBe(i) && ['as', 'state', 'status'].includes(name.toLowerCase()))
  return named >= 0 ? named : head.findIndex((_, i) => mayBe(i))
}

export function beginReading(name: string, text: string, cases: OpenCases, members: string[]): Reading {
  let sheet
  try {
    sheet = readSheet(text)
  } catch (error) {
    throw new Problem(422, `${name} cannot be read`, `${(error as Error).message}.`)
  }
  const nameColumn = columnOfNames(sheet, cases)
  const same = members.map((member): [string, number] => [member, sheet.head.indexOf(member)])
  return {
    ...{ name, sheet, nameColumn, meanings: {}, members: Object.fromEntries(same) },
    wordColumn: columnOfWords(sheet, nameColumn)
  }
}

// --- what the rows come to ---

export interface Rows {
  items: Record<string, unknown>[]
  left: { why: string; count: number; examples: string[] }[] // nothing is done about these
  unsaid: string[] // words without a meaning yet
}

const examplesMax = 3

export function rowsOf(reading: Reading, { byName }: OpenCases): Rows {
  const { sheet, nameColumn, wordColumn, meanings, members } = reading
  const items: Rows['items'] = []
  const left = new Map<string, { count: number; examples: string[] }>()
  const unsaid = [...wordsOf(reading).keys()].filter((word) => meanings[word] === undefined)
  for (const row of sheet.rows) {
    const name = row[nameColumn] ?? ''
    const word = row[wordColumn] ?? ''
    const keys = byName.get(name)
    const verdict = verdicts[Number(meanings[word])] as CaseVerb | undefined
    const why = !keys
      ? 'about none of these cases'
      : keys.length > 1
        ? 'with the name of several cases'
        : word === ''
          ? 'without a word'
          : meanings[word] === leftOut
            ? 'left out, as you said'
            : !verdict
              ? 'with a word of which you have not said what it means'
              : null
    if (why) {
      const told = left.get(why) ?? { count: 0, examples: [] }
      told.count++
      if (told.examples.length < examplesMax) told.examples.push(name)
      left.set(why, told)
      continue
    }
    const { as, then } = verdict!
    const made = Object.entries(members).filter(([, column]) => column >= 0 && row[column] !== '')
    const result = Object.fromEntries(made.map(([member, column]) => [member, row[column]]))
    items.push({ operation: keys![0], as, then, ...(as === 'happened' && made.length > 0 ? { result } : {}) })
  }
  return { items, left: [...left].map(([why, told]) => ({ why, ...told })), unsaid }
}

// The same with sagactl: one command for each verdict, because --then is of all rows.
export function rowsAsWords(reading: Reading): string[][] {
  const { sheet, nameColumn, wordColumn, meanings, members } = reading
  return verdicts.flatMap(({ as, then }, place) => {
    const words = Object.keys(meanings).filter((word) => meanings[word] === String(place))
    if (words.length === 0) return []
    const results = Object.entries(members).filter(([, column]) => as === 'happened' && column >= 0)
    return [
      [
        ...['--from', reading.name],
        ...['--column', `${sheet.head[nameColumn]}=business_id`, '--column', `${sheet.head[wordColumn]}=as`],
        ...results.flatMap(([member, column]) => ['--column', `${sheet.head[column]}=result.${member}`]),
        ...words.flatMap((word) => ['--map', `${word}=${as}`]),
        ...(then ? ['--then', then] : [])
      ]
    ]
  })
}
