// Every view: its name in the address, its title, the key behind g.
import type { ComponentType } from 'preact'
import type { Route } from '../route'
import type { Me } from '../types'
import { Approvals } from './approvals'
import { Bulk } from './bulk'
import { Calls } from './calls'
import { CaseView } from './case'
import { Cases } from './cases'
import { Definitions } from './definitions'
import { Overview } from './overview'
import { People } from './people'
import { SagaView } from './saga'
import { Sagas } from './sagas'
import { Holds, Tools } from './tools'

export interface ViewProps {
  route: Route
  me: Me
}

export interface View {
  name: string
  also?: string[] // names of views that belong to this one
  title: string
  key: string
  ofSeveral?: boolean // shows several namespaces at once
  View: ComponentType<ViewProps>
}

const SagasOrOne: ComponentType<ViewProps> = (props) =>
  props.route.path[0] === 'saga' ? SagaView(props) : Sagas(props)
const CasesOrOne: ComponentType<ViewProps> = (props) =>
  props.route.path[0] === 'case' ? CaseView(props) : Cases(props)

const ToolsOrHolds: ComponentType<ViewProps> = (props) =>
  props.route.path[0] === 'holds' ? Holds(props) : Tools(props)

export const views: View[] = [
  { name: 'overview', title: 'Overview', key: 'o', View: Overview },
  { name: 'sagas', also: ['saga'], title: 'Sagas', key: 's', ofSeveral: true, View: SagasOrOne },
  { name: 'cases', also: ['case'], title: 'Needs a person', key: 'n', ofSeveral: true, View: CasesOrOne },
  { name: 'approvals', title: 'Approvals', key: 'a', ofSeveral: true, View: Approvals },
  { name: 'bulk', title: 'Many at once', key: 'm', View: Bulk },
  { name: 'definitions', title: 'Definitions', key: 'd', View: Definitions },
  { name: 'tools', also: ['holds'], title: 'Tools', key: 't', View: ToolsOrHolds },
  { name: 'calls', title: 'Calls', key: 'c', View: Calls },
  { name: 'people', title: 'People', key: 'p', ofSeveral: true, View: People }
]
