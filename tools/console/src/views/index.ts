// Every view: its name in the address, its title, the key behind g.
import type { ComponentType } from 'preact'
import type { Route } from '../route'
import type { Me } from '../types'
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

export const views: View[] = [{ name: 'sagas', also: ['saga'], title: 'Sagas', key: 's', View: SagasOrOne }]
