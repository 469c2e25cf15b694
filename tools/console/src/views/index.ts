// Every view: its name in the address, its title, the key behind g.
import type { ComponentType } from 'preact'
import type { Route } from '../route'
import type { Me } from '../types'
import { Bulk } from './bulk'
import { CaseView } from './case'
import { Cases } from './cases'
import { SagaView } from './saga'
import { Sagas } from './sagas'

export interface ViewProps {
  route: Route
  me: Me
}

export interface View {
  name: string
  also?: string[] // names of views that belong to this one
  title: string
  key: string
  View: ComponentType<ViewProps>
}

const SagasOrOne: ComponentType<ViewProps> = (props) =>
  props.route.path[0] === 'saga' ? SagaView(props) : Sagas(props)
const CasesOrOne: ComponentType<ViewProps> = (props) =>
  props.route.path[0] === 'case' ? CaseView(props) : Cases(props)

export const views: View[] = [
  { name: 'sagas', also: ['saga'], title: 'Sagas', key: 's', View: SagasOrOne },
  { name: 'cases', also: ['case'], title: 'Needs a person', key: 'n', View: CasesOrOne },
  { name: 'bulk', title: 'Many at once', key: 'm', View: Bulk }
]
