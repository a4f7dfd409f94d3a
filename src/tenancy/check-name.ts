// Names of workspaces, projects and keys are free text for people; only what could not be shown or stored is refused.

import { type Failure, invalidRequest } from '../kernel/failure.ts'

const nameLengthMax = 100
/** Control characters and lone surrogates: they break terminals and logs, and PostgreSQL refuses some of them. */
const unshowable = /[\p{Cc}\p{Cs}\u2028\u2029]/u

export function checkName(name: string): Failure | undefined {
  if (name.trim() === '') return invalidRequest('`name` must not be empty.', 'name')
  if (name.length > nameLengthMax) return invalidRequest(`\`name\` has more than ${nameLengthMax} characters.`, 'name')
  if (unshowable.test(name)) return invalidRequest('`name` must be one line of printable text.', 'name')
  return undefined
}
