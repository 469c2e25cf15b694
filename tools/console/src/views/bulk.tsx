// One verb on many sagas: chosen, frozen and shown, confirmed by its number, carried out, and an outcome for each.
import { useState } from 'preact/hooks'
import { Fresh, useAnnounced } from '../announced'
import { Problem, change, parse, query, read } from '../api'
import { caseVerbs, verbFlags, type CaseVerb } from '../caseverbs'
import { rowsAsWords, rowsOf } from '../evidence'
import { FileRows, type ReadFile } from '../filerows'
import { tagParameters } from '../filters'
import { useLive } from '../live'
import { go, href, replace } from '../route'
import { State, wordOf } from '../state'
import { Table } from '../table'
import { Age } from '../time'
import type { BulkItem, BulkJob, Counted, Page } from '../types'
import { Act, Copy, Empty, Fact, Facts, Loading, Trouble, command, count, short, whyNot } from '../ui'
import { VerbDialog, noteMax } from '../verb'
import type { ViewProps } from './index'

interface Choice extends CaseVerb {
  title: string
  does: string
}

const sagaVerbs: Choice[] = [
  { action: 'pause', title: 'Pause', does: 'Nothing of these sagas begins until they are resumed.' },
  { action: 'resume', title: 'Resume', does: 'The sagas go on where they stand.' },
  { action: 'abort', title: 'Abort', does: 'Forward work ends, and what was done is undone.' }
]

// Each case gets the answer of its own row, so the job has none.
const asRowsSay: Choice = {
  action: 'resolve',
  title: 'As a file says',
  does: 'The rows of a file, such as that of the bank, say what is true of each.'
}

function filterOf(all: Record<string, string>) {
  const { of: _of, verb: _verb, list: _list, by: _by, items: _items, names: _names, tag, ...rest } = all
  return { ...rest, ...tagParameters(tag) }
}

const titles: Record<string, string> = {
  saga: 'Definition',
  reason: 'Why a person is asked',
  business_id: 'Business id',
  business_id_prefix: 'Business id begins with',
  since: 'Since',
  until: 'Before'
}
const titleOfFilter = (name: string) =>
  titles[name] ?? (name.startsWith('tag.') ? `Tag ${name.slice(4)}` : name[0].toUpperCase() + name.slice(1))

const valueOfFilter = (name: string, value: string) =>
  value === '' ? 'none' : name === 'reason' || name === 'status' ? value.split(',').map(wordOf).join(', ') : value

function asCommand(
  verb: Choice,
  asked: Record<string, string>,
  ofCases: boolean,
  note: string,
  file: ReadFile | null
): string {
  const filter = filterOf(asked)
  const flags: Record<string, string> = {
    since: ofCases ? '--opened-since' : '--since',
    until: ofCases ? '--opened-until' : '--until',
    business_id: '--id',
    business_id_prefix: '--id-prefix'
  }
  const words = Object.entries(filter).flatMap(([name, value]) =>
    name.startsWith('tag.') ? ['--tag', `${name.slice(4)}=${value}`] : [flags[name] ?? `--${name}`, value]
  )
  if (verb === asRowsSay) {
    const rows = file ? rowsAsWords(file.reading) : [['--from', 'FILE', '--column', 'COLUMN=business_id']]
    return rows.map((some) => command('sagactl', 'resolve', ...words, ...some, '--note', note)).join('\n')
  }
  const verbs = ofCases ? ['resolve', ...verbFlags(verb)] : [verb.action]
  const names = asked.names ? asked.names.split(',') : []
  if (ofCases) return command('sagactl', 'resolve', ...names, ...verbs.slice(1), ...words, '--note', note)
  return command('sagactl', ...verbs, ...names, ...words, '--note', note)
}

// The rows that were picked; null: a filter says what is meant.
function itemsOf({ items }: Record<string, string>): unknown[] | null {
  if (!items) return null
  try {
    const read = JSON.parse(items)
    return Array.isArray(read) ? read : []
  } catch {
    return [] // an address that was cut; sagad refuses it
  }
}

// --- a new job ---

function readResult(text: string) {
  try {
    return parse(text)
  } catch {
    throw new Problem(422, 'The result is no JSON', 'Type a JSON value, such as {"id": 7}, or nothing.')
  }
}

// The items of a job that a file names. What the person has not said yet is said before sagad is asked.
function itemsOfFile(file: ReadFile | null) {
  if (!file) throw new Problem(422, 'There is no file yet', 'Choose the file whose rows say what is true.')
  const { items, unsaid } = rowsOf(file.reading, file.cases)
  if (unsaid.length > 0)
    throw new Problem(422, 'A word has no meaning yet', `Say what ${unsaid.join(', ')} means, or leave its rows out.`)
  if (items.length === 0)
    throw new Problem(422, 'No row is left', 'No row of the file is about one of these cases and says what is true.')
  return items
}

function NewJob({ route, me }: ViewProps) {
  const ofCases = route.query.of !== 'sagas'
  const isPicked = route.query.items !== undefined
  const choices: Choice[] = ofCases ? [...caseVerbs, ...(isPicked ? [] : [asRowsSay])] : sagaVerbs
  const [chosen, setChosen] = useState(0)
  const [note, setNote] = useState('')
  const [double, setDouble] = useState(false)
  const [result, setResult] = useState('')
  const [file, setFile] = useState<ReadFile | null>(null)
  const [problem, setProblem] = useState<Problem | null>(null)
  const [busy, setBusy] = useState(false)
  const filter = filterOf(route.query)
  const items = itemsOf(route.query)
  const verb = choices[chosen]
  const { action, as, then } = verb
  const why = whyNot(me, 'operator')

  async function freeze(event: Event) {
    event.preventDefault()
    setBusy(true)
    try {
      const body = {
        ...{ action, as, then, note: note.trim() },
        ...(verb === asRowsSay ? { items: itemsOfFile(file) } : items ? { items } : { filter }),
        ...(double && action === 'retry' ? { accept_double: true } : {}),
        ...(result.trim() && as === 'happened' ? { result: readResult(result) } : {})
      }
      const job = await change<BulkJob>('POST', 'v1/bulk', body)
      go(['bulk', job.bulk])
    } catch (error) {
      setProblem(error as Problem)
    }
    setBusy(false)
  }
  return (
    <>
      <div class="title">
        <h1>One answer for many</h1>
      </div>
      <Facts>
        <Fact name="About">
          {items
            ? `${count(items.length, ofCases ? 'case' : 'saga')} that you picked`
            : `all ${ofCases ? 'open cases' : 'sagas'} that match`}
        </Fact>
        {Object.entries(filter).map(([name, value]) => (
          <Fact key={name} name={titleOfFilter(name)}>
            {valueOfFilter(name, value)}
          </Fact>
        ))}
      </Facts>
      <form class="verb bulk" onSubmit={(event) => void freeze(event)}>
        <fieldset class="choices">
          <legend>{ofCases ? 'What is true of each?' : 'What is to be done to each?'}</legend>
          {choices.map((choice, i) => (
            <label class="check" key={`${choice.action} ${choice.as} ${choice.then}`}>
              <input type="radio" name="verb" checked={i === chosen} onChange={() => setChosen(i)} />
              <span>
                <span>{choice.title}</span> <span class="muted">{choice.does}</span>
              </span>
            </label>
          ))}
        </fieldset>
        {verb === asRowsSay && <FileRows filter={filter} file={file} onRead={setFile} />}
        {action === 'retry' && (
          <label class="check">
            <input type="checkbox" checked={double} onChange={(event) => setDouble(event.currentTarget.checked)} /> A
            second effect is acceptable
          </label>
        )}
        {as === 'happened' && (
          <label>
            One result for all, JSON; needed where a later step uses it
            <textarea
              class="json-text"
              rows={2}
              value={result}
              onInput={(event) => setResult(event.currentTarget.value)}
            />
          </label>
        )}
        <label>
          Why, for those who read the logs later
          <textarea
            required
            rows={2}
            maxLength={noteMax}
            value={note}
            onInput={(event) => setNote(event.currentTarget.value)}
          />
        </label>
        <Trouble problem={problem} />
        <div class="actions">
          {why ? (
            <Act why={why}>Show what would happen</Act>
          ) : (
            <button type="submit" class="main" disabled={busy}>
              {busy ? 'Looking at each …' : 'Show what would happen'}
            </button>
          )}
          <Copy text={asCommand(verb, route.query, ofCases, note || 'WHY', file)} label="copy as sagactl" />
        </div>
        <p class="muted">Nothing is done yet: the next page shows the set, frozen, and what would happen.</p>
      </form>
    </>
  )
}

// --- a job ---

const Reasons = ({ title, of }: { title: string; of: Counted[] }) =>
  of.length === 0 ? null : (
    <>
      <h3>{title}</h3>
      <ul>
        {of.map(({ reason, count: n, examples }) => (
          <li key={reason}>
            <strong>{n.toLocaleString('en')}</strong> {reason}
            <span class="muted"> such as {examples.join(', ')}</span>
          </li>
        ))}
      </ul>
    </>
  )

function Preview({ job }: { job: BulkJob }) {
  return (
    <section aria-label="What would happen">
      <h2>What would happen</h2>
      {job.looked < job.count && (
        <p>
          sagad has looked at {job.looked.toLocaleString('en')} of {count(job.count, 'item')}; the figures below are of
          those.
        </p>
      )}
      <ul class="leads">
        <li>
          <strong>{job.applies.toLocaleString('en')}</strong> would take it
        </li>
        {job.leads_to.map(({ status, count: n }) => (
          <li key={status}>
            <strong>{n.toLocaleString('en')}</strong> would end <State state={status} />, if nothing else fails
          </li>
        ))}
      </ul>
      <Reasons title="Would be refused" of={job.refused} />
      <Reasons title="Named, and not in the set" of={job.unmatched} />
    </section>
  )
}

function Confirm({ job, me, onDone }: { job: BulkJob; me: ViewProps['me']; onDone: () => void }) {
  const [typed, setTyped] = useState('')
  const [problem, setProblem] = useState<Problem | null>(null)
  const [busy, setBusy] = useState(false)
  const why = whyNot(me, 'operator')

  async function run(event: Event) {
    event.preventDefault()
    setBusy(true)
    try {
      await change('POST', `v1/bulk/${job.bulk}/run`, {})
      onDone()
    } catch (error) {
      setProblem(error as Problem)
    }
    setBusy(false)
  }
  if (why) return <Act why={why}>Run it</Act>
  return (
    <form class="verb" onSubmit={(event) => void run(event)}>
      <label>
        Type {job.count} to run it
        <input
          inputMode="numeric"
          autoComplete="off"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
      <Trouble problem={problem} />
      <div class="actions">
        <button type="submit" class="danger" disabled={busy || typed.trim() !== String(job.count)}>
          {busy ? 'Asking sagad …' : `Run it on ${job.count.toLocaleString('en')}`}
        </button>
        <span class="muted">
          The set expires <Age at={job.expires_at} />.
        </span>
      </div>
    </form>
  )
}

function Progress({ job }: { job: BulkJob }) {
  const { open, ...ended } = job.outcomes
  const over = job.count - open
  return (
    <section aria-label="Progress" role="status">
      <h2>
        {over.toLocaleString('en')} of {job.count.toLocaleString('en')} have an outcome
      </h2>
      <progress max={job.count} value={over}>
        {over} of {job.count}
      </progress>
      <ul class="leads">
        {Object.entries({ ...ended, open })
          .filter(([, n]) => n > 0)
          .map(([outcome, n]) => (
            <li key={outcome}>
              <a href={href(['bulk', job.bulk], { outcome })}>
                <strong>{n.toLocaleString('en')}</strong> {outcome === 'open' ? 'not yet' : wordOf(outcome)}
              </a>
            </li>
          ))}
      </ul>
    </section>
  )
}

function Items({ job, outcome }: { job: BulkJob; outcome: string | undefined }) {
  const [more, setMore] = useState<BulkItem[]>([])
  const path = query(`v1/bulk/${job.bulk}/items`, { outcome, limit: 100 })
  const live = useLive<Page<BulkItem>>(path, 3000)
  const [cursor, setCursor] = useState<string | null | undefined>(undefined)
  const next = cursor === undefined ? live.data?.next_cursor : cursor
  const [problem, setProblem] = useState<Problem | null>(null)

  async function readMore() {
    try {
      const page = await read<Page<BulkItem>>(query(`v1/bulk/${job.bulk}/items`, { outcome, limit: 100, after: next }))
      setMore([...more, ...page.items])
      setCursor(page.next_cursor)
    } catch (error) {
      setProblem(error as Problem)
    }
  }
  if (!live.data) return live.problem ? <Trouble problem={live.problem} /> : <Loading what="items" />
  const items = [...live.data.items, ...more]
  return (
    <section aria-label="Items">
      <h2>{outcome ? `Items: ${outcome === 'open' ? 'not yet' : wordOf(outcome)}` : 'Items'}</h2>
      {outcome && (
        <button type="button" class="quiet" onClick={() => replace(['bulk', job.bulk], {})}>
          show all
        </button>
      )}
      <Table
        label="Items"
        rows={items}
        keyOf={(item) => item.n}
        columns={[
          [
            'Saga',
            (item) => (
              <>
                <a href={href(['saga', item.saga])}>{item.business_id ?? short(item.saga)}</a>{' '}
                <span class="muted">{item.saga_name}</span>
              </>
            )
          ],
          ['Step', (item) => <>{item.step ?? '–'}</>],
          [
            'Outcome',
            (item) => (
              <>
                <State
                  state={item.outcome === 'open' ? 'pending' : item.outcome}
                  word={item.outcome === 'open' ? 'not yet' : undefined}
                />
              </>
            )
          ],
          ['Why', (item) => <>{item.error ? (item.error.message ?? item.error.detail ?? item.error.code) : '–'}</>]
        ]}
      />
      <Trouble problem={problem} />
      {next && (
        <button type="button" onClick={() => void readMore()}>
          Show more
        </button>
      )}
    </section>
  )
}

const nothingApplies = (job: BulkJob) => job.count === 0 || (job.looked === job.count && job.applies === 0)

function Job({ route, me }: ViewProps) {
  const id = route.path[1] ?? ''
  const live = useLive<BulkJob>(`v1/bulk/${encodeURIComponent(id)}`, 1500)
  const [stopping, setStopping] = useState(false)
  const job = live.data
  if (!job)
    return (
      <>
        <h1>Bulk job</h1>
        {live.problem ? <Trouble problem={live.problem} retry={live.refresh} /> : <Loading what="the job" />}
      </>
    )
  return (
    <>
      <div class="title">
        <h1>
          {titleOf(job)}: {count(job.count, 'item')}
        </h1>
        <State state={job.state} />
        {job.state === 'running' && (
          <Act kind="danger" why={whyNot(me, 'operator')} onClick={() => setStopping(true)}>
            Stop
          </Act>
        )}
        <Copy text={command('sagactl', 'bulk', 'show', job.bulk)} label="copy as sagactl" />
      </div>
      <Facts>
        <Fact name="Why">{job.note}</Fact>
        <Fact name="Made by">
          {job.created_by} <Age at={job.created_at} />
        </Fact>
        {job.run && (
          <Fact name="Run by">
            {job.run.actor} <Age at={job.run.at} />
          </Fact>
        )}
        {job.stop && (
          <Fact name="Stopped by">
            {job.stop.actor}: {job.stop.note}
          </Fact>
        )}
        {Object.entries(job.filter ?? {}).map(([name, value]) => (
          <Fact key={name} name={titleOfFilter(name)}>
            {valueOfFilter(name, String(value))}
          </Fact>
        ))}
      </Facts>
      {job.state === 'frozen' ? (
        <>
          <Preview job={job} />
          {nothingApplies(job) ? (
            <Empty
              title={job.count === 0 ? 'The set is empty: there is nothing to do' : 'None of them would take it'}
            />
          ) : (
            <Confirm job={job} me={me} onDone={live.refresh} />
          )}
        </>
      ) : (
        <Progress job={job} />
      )}
      <Items job={job} outcome={route.query.outcome} key={route.query.outcome ?? ''} />
      {stopping && (
        <VerbDialog
          title="Stop this job"
          does="Items without an outcome are left as they are. What was done stays done."
          path={`v1/bulk/${job.bulk}/stop`}
          body={(note) => ({ note })}
          asCommand={(note) => command('sagactl', 'bulk', 'stop', job.bulk, '--note', note)}
          danger
          button="Stop"
          onClose={() => setStopping(false)}
          onDone={live.refresh}
        />
      )}
    </>
  )
}

// --- all jobs ---

function titleOf(job: BulkJob) {
  const verb = [...caseVerbs, ...sagaVerbs, asRowsSay].find(
    (one) => one.action === job.action && one.as === (job.as ?? undefined) && one.then === (job.then ?? undefined)
  )
  return verb?.title ?? job.action
}

function Jobs() {
  const live = useLive<Page<BulkJob>>('v1/bulk?limit=100', 5000)
  const list = useAnnounced('jobs', live, ({ bulk }) => bulk)
  return (
    <>
      <div class="title">
        <h1>Many at once</h1>
        <Copy text="sagactl bulk" label="copy as sagactl" />
      </div>
      <Trouble problem={live.problem?.lost ? null : live.problem} retry={live.refresh} />
      {!live.data && !live.problem && <Loading what="jobs" />}
      {live.data?.items.length === 0 && (
        <Empty title="No job was made yet" command="sagactl pause --saga order --status running --note WHY">
          <p>A job does one verb to many sagas. Begin with a group of cases, or with a filtered list of sagas.</p>
        </Empty>
      )}
      {list && list.rows.length > 0 && (
        <Fresh list={list} one="job">
          {count(list.rows.length, 'job')} shown.
        </Fresh>
      )}
      {list && list.rows.length > 0 && (
        <Table
          label="Jobs"
          rows={list.rows}
          keyOf={(job) => job.bulk}
          columns={[
            [
              'Job',
              (job) => (
                <>
                  <a href={href(['bulk', job.bulk])}>
                    {titleOf(job)}: {count(job.count, 'item')}
                  </a>
                </>
              )
            ],
            [
              'State',
              (job) => (
                <>
                  <State state={job.state} />
                </>
              )
            ],
            ['Done', (job) => <>{job.outcomes.done}</>, true],
            ['Refused', (job) => <>{job.outcomes.refused + job.outcomes.changed}</>, true],
            ['Why', (job) => <>{job.note}</>],
            [
              'By',
              (job) => (
                <>
                  {job.created_by} <Age at={job.created_at} />
                </>
              )
            ]
          ]}
        />
      )}
    </>
  )
}

export function Bulk(props: ViewProps) {
  const which = props.route.path[1]
  return which === 'new' ? <NewJob {...props} /> : which ? <Job {...props} /> : <Jobs />
}
