// What waits for a yes or no. An answer counts only for what was shown: it carries the hash of that.
import { useState } from 'preact/hooks'
import { Fresh, useAnnounced } from '../announced'
import { query } from '../api'
import { useLive } from '../live'
import { href } from '../route'
import { State } from '../state'
import { Age } from '../time'
import type { Approval, Me, Page, Role } from '../types'
import {
  Act,
  Copy,
  Empty,
  Fact,
  Facts,
  Json,
  Loading,
  Trouble,
  command,
  count,
  isNothing,
  may,
  short,
  whyNot
} from '../ui'
import { VerbDialog } from '../verb'
import type { ViewProps } from './index'

const roles: Role[] = ['reader', 'agent', 'operator', 'admin']

function whyNotMe(one: Approval, me: Me) {
  if (one.status !== 'open') return `it is ${one.status}`
  const least = roles.find((role) => one.roles?.includes(role)) ?? 'operator'
  return may(me, least) ? null : whyNot(me, least)
}

function Decide({ one, me, onDone }: { one: Approval; me: Me; onDone: () => void }) {
  const [asked, setAsked] = useState<'approve' | 'refuse' | null>(null)
  const why = whyNotMe(one, me)
  return (
    <>
      <div class="actions">
        <Act kind="main" why={why} onClick={() => setAsked('approve')}>
          Approve
        </Act>
        <Act kind="danger" why={why} briefly onClick={() => setAsked('refuse')}>
          Refuse
        </Act>
      </div>
      {asked && (
        <VerbDialog
          title={`${asked === 'approve' ? 'Approve' : 'Refuse'}: ${one.business_id ?? short(one.saga)}`}
          does={
            asked === 'approve'
              ? 'The saga goes on. Your answer counts for what is shown here, and for nothing else.'
              : 'The step fails, and the saga goes the way that its definition says.'
          }
          path={`v1/approvals/${one.n}`}
          namespace={one.namespace}
          body={(note) => ({ decision: asked, note, hash: one.hash })}
          asCommand={(note) =>
            command(
              'sagactl',
              'approve',
              String(one.n),
              asked === 'refuse' && '--refuse',
              '--hash',
              one.hash,
              '--note',
              note
            )
          }
          danger={asked === 'refuse'}
          button={asked === 'approve' ? 'Approve' : 'Refuse'}
          onClose={() => setAsked(null)}
          onDone={onDone}
        >
          {!isNothing(one.show) && <Json value={one.show} label="What is shown" />}
        </VerbDialog>
      )}
    </>
  )
}

const Card = ({ one, me, isGone, onDone }: { one: Approval; me: Me; isGone: boolean; onDone: () => void }) => (
  <li class="answer">
    <div class="title">
      <h2>
        <a href={href(['saga', one.saga], { step: one.step, ...(one.namespace ? { ns: one.namespace } : {}) })}>
          {one.business_id ?? short(one.saga)}
        </a>
        <span class="muted">
          {' '}
          {one.saga_name}, step {one.step}
          {one.namespace && `, in ${one.namespace}`}
        </span>
      </h2>
      <State
        state={isGone ? 'resolved' : one.status}
        word={isGone ? 'decided' : one.status === 'open' ? 'waits' : undefined}
      />
    </div>
    {isNothing(one.show) ? (
      <p class="muted">The definition shows nothing.</p>
    ) : (
      <Json value={one.show} label="What is to be approved" />
    )}
    <Facts>
      <Fact name="Asked">
        <Age at={one.opened_at} />
      </Fact>
      <Fact name="Until">
        <Age at={one.expires_at} />
      </Fact>
      <Fact name="Who may">{one.roles?.join(', ') ?? 'operator'}</Fact>
      <Fact name="Approval">{one.n}</Fact>
      {one.not_by && <Fact name="And not">whoever started the saga</Fact>}
      {one.actor && (
        <Fact name="Decided by">
          {one.actor}: {one.note} <Age at={one.decided_at} />
        </Fact>
      )}
    </Facts>
    {one.status === 'open' && !isGone && <Decide one={one} me={me} onDone={onDone} />}
  </li>
)

export function Approvals({ route, me }: ViewProps) {
  const { n, status = 'open' } = route.query
  const list = useLive<Page<Approval>>(n ? null : query('v1/approvals', { status, limit: 100 }), 3000, {
    follows: ['approval.'],
    merge: { namespaces: route.namespaces, newestBy: 'opened_at', limit: 100 }
  })
  const single = useLive<Approval>(n ? `v1/approvals/${encodeURIComponent(n)}` : null, 3000, { follows: ['approval.'] })
  const { problem, refresh } = n ? single : list
  const many = useAnnounced(status, list, (one) => `${one.namespace ?? ''} ${one.n}`)
  const shown = n ? single.data && [single.data] : many?.rows
  return (
    <>
      <div class="title">
        <h1>Approvals</h1>
        <Copy text={n ? command('sagactl', 'approvals', n) : 'sagactl approvals'} label="copy as sagactl" />
      </div>
      <nav class="tabs" aria-label="Which">
        <a href={href(['approvals'])} aria-current={!n && status === 'open' ? 'page' : undefined}>
          Waiting
        </a>
        <a href={href(['approvals'], { status: 'all' })} aria-current={!n && status === 'all' ? 'page' : undefined}>
          All
        </a>
      </nav>
      <Trouble problem={problem?.lost ? null : problem} retry={refresh} />
      {!shown && !problem && <Loading what="approvals" />}
      {shown?.length === 0 && (
        <Empty title="Nothing waits for an approval" command="sagactl approvals --status all">
          <p>A step of a definition may ask a person for a yes or no, and shows what it is about.</p>
        </Empty>
      )}
      {!n && many && many.rows.length > 0 && (
        <Fresh list={many} one="approval">
          {count(many.rows.length, 'approval')} shown{list.data?.next_cursor ? '; there are more' : ''}.
        </Fresh>
      )}
      <ul class="answers" aria-busy={!n && many?.isBusy}>
        {shown?.map((one) => (
          <Card
            key={`${one.namespace} ${one.n}`}
            one={one}
            me={me}
            onDone={refresh}
            isGone={!n && Boolean(many?.isGone(one))}
          />
        ))}
      </ul>
      {list.data?.next_cursor && <p class="muted">There are more: sagactl approvals lists them.</p>}
    </>
  )
}
