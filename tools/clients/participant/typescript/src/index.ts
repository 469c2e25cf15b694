// The participant kit. participant.sql and participant.ts are the files to read first.
export {
  Participant,
  type Answer,
  type Asked,
  type Connection,
  type ParticipantOptions,
  type Pool,
  type Reply,
  type Sql
} from './participant.js'
