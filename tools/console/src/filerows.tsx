// The part of a form in which a person says how a file is to be read, and sees what its rows come to.
import { useState } from 'preact/hooks'
import { Problem } from './api'
import {
  beginReading,
  leftOut,
  readOpenCases,
  readResultMembers,
  rowsOf,
  verdicts,
  wordsMax,
  wordsOf,
  type OpenCases,
  type Reading
} from './evidence'
import { Choice, Trouble, count } from './ui'

const bytesMax = 8_000_000

export interface ReadFile {
  reading: Reading
  cases: OpenCases
}

function Columns({ reading, onChange }: { reading: Reading; onChange: (changed: Partial<Reading>) => void }) {
  const { head } = reading.sheet
  const columns: [string, string][] = [['-1', 'no column'], ...head.map((name, i): [string, string] => [`${i}`, name])]
  return (
    <div class="filters">
      <Choice
        id="name-column"
        label="Names the saga"
        value={String(reading.nameColumn)}
        choices={columns}
        onChoose={(column) => onChange({ nameColumn: Number(column) })}
      />
      <Choice
        id="word-column"
        label="Says what is true"
        value={String(reading.wordColumn)}
        choices={columns}
        onChoose={(column) => onChange({ wordColumn: Number(column), meanings: {} })}
      />
      {Object.entries(reading.members).map(([member, column]) => (
        <Choice
          key={member}
          id={`member-${member}`}
          label={`Result: ${member}`}
          value={String(column)}
          choices={columns}
          onChoose={(to) => onChange({ members: { ...reading.members, [member]: Number(to) } })}
        />
      ))}
    </div>
  )
}

function Meaning({
  word,
  n,
  value,
  onChoose
}: {
  word: string
  n: number
  value: string | undefined
  onChoose: (meaning: string) => void
}) {
  const choices = [...verdicts.map(({ title }, i) => [String(i), title]), [leftOut, 'Leave these rows out']]
  return (
    <fieldset class="meaning">
      <legend>
        <code>{word}</code> <span class="muted">in {count(n, 'row')} means</span>
      </legend>
      {choices.map(([meaning, title]) => (
        <label class="check" key={meaning}>
          <input type="radio" name={`meaning ${word}`} checked={value === meaning} onChange={() => onChoose(meaning)} />
          {title}
        </label>
      ))}
    </fieldset>
  )
}

function Meanings({ reading, onChange }: { reading: Reading; onChange: (changed: Partial<Reading>) => void }) {
  const words = [...wordsOf(reading)]
  if (words.length > wordsMax)
    return (
      <p class="wrong">
        This column has {words.length.toLocaleString('en')} different words. Choose the one that says what is true.
      </p>
    )
  return words.map(([word, n]) => (
    <Meaning
      key={word}
      word={word}
      n={n}
      value={reading.meanings[word]}
      onChoose={(meaning) => onChange({ meanings: { ...reading.meanings, [word]: meaning } })}
    />
  ))
}

function Comes({ file }: { file: ReadFile }) {
  const { items, left } = rowsOf(file.reading, file.cases)
  return (
    <div role="status">
      <ul class="leads">
        <li>
          <strong>{count(items.length, 'row')}</strong> of {file.reading.sheet.rows.length.toLocaleString('en')}{' '}
          {items.length === 1 ? 'is' : 'are'} about one of {count(file.cases.count, 'open case')}
        </li>
        {left.map(({ why, count: n, examples }) => (
          <li key={why}>
            <strong>{count(n, 'row')}</strong> {why}, about which nothing is done{' '}
            <span class="muted">
              ({n > examples.length && 'such as '}
              {examples.join(', ')})
            </span>
          </li>
        ))}
      </ul>
    </div>
  )
}

export function FileRows({
  filter,
  file,
  onRead
}: {
  filter: Record<string, string>
  file: ReadFile | null
  onRead: (file: ReadFile | null) => void
}) {
  const [problem, setProblem] = useState<Problem | null>(null)
  const [busy, setBusy] = useState(false)

  async function take(chosen: File | undefined) {
    onRead(null)
    setProblem(null)
    if (!chosen) return
    setBusy(true)
    try {
      if (chosen.size > bytesMax)
        throw new Problem(413, 'The file is too large', 'Split it: one job takes 20,000 rows.')
      const [text, cases, members] = await Promise.all([
        chosen.text(),
        readOpenCases(filter),
        readResultMembers(filter.tool)
      ])
      onRead({ reading: beginReading(chosen.name, text, cases, members), cases })
    } catch (error) {
      setProblem(error as Problem)
    }
    setBusy(false)
  }
  const change = (changed: Partial<Reading>) => file && onRead({ ...file, reading: { ...file.reading, ...changed } })
  return (
    <>
      <label>
        The file, CSV with a head
        <input
          type="file"
          accept=".csv,text/csv"
          onChange={(event) => void take(event.currentTarget.files?.[0] ?? undefined)}
        />
      </label>
      {busy && (
        <p class="muted" role="status">
          Reading the file and the open cases …
        </p>
      )}
      <Trouble problem={problem} />
      {file && (
        <>
          <Columns reading={file.reading} onChange={change} />
          <Meanings reading={file.reading} onChange={change} />
          <Comes file={file} />
        </>
      )}
    </>
  )
}
