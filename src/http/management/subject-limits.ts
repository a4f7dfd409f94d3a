// Handler of the spend limits that count one person, group, end user or tag.

import type { AnswerOf } from '../../api/client.ts'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { PersonId, WorkspaceId } from '../../kernel/ids.ts'
import {
  isById,
  type NamedSubject,
  namedSubjectForms,
  parseNamedSubject,
  subjectText,
} from '../../kernel/spend-limit.ts'
import type { Sql } from '../../store/sql.ts'
import {
  type FoundSubject,
  findSubject,
  groupsOfPerson,
  limitsOf,
  roleIn,
  type SubjectLimit,
} from '../../tenancy/subject-limits.ts'
import type { RouteDependencies } from './dependencies.ts'
import type { Handlers } from './route.ts'
import { readSpent, type Spent, spendStateOf } from './spend-states.ts'

export function subjectLimitHandlers({ database }: RouteDependencies) {
  return {
    async getSubjectLimits({ id: workspaceId, query, act: { at: now }, reach: { ownerId } }) {
      const { sql } = database
      const asked = parseNamedSubject(query.subject)
      if (!asked) {
        const message = `\`subject\` must be one of ${namedSubjectForms.join(', ')}, not "${query.subject.slice(0, 100)}".`
        throw invalidRequest(message, 'subject')
      }
      const found = await (ownerId === undefined
        ? findSubject(sql, workspaceId, asked)
        : findOneself(sql, workspaceId, asked, ownerId))
      const { kind, name } = found.subject
      const isPerson = kind === 'person'
      const groups = isPerson ? await groupsOfPerson(sql, workspaceId, name) : []
      const throughGroups = groups.map((group): FoundSubject => {
        return { subject: { kind: 'group', name: group.id }, label: group.name }
      })
      const limits = await limitsOf(sql, workspaceId, [found, ...throughGroups], now)
      const spent = await readSpent(sql, limits, now)
      return {
        subject: subjectText({ kind, name: found.label }),
        id: isById(kind) ? name : null,
        role: (isPerson && (await roleIn(sql, workspaceId, name))) || null,
        groups,
        limits: limits.map((limit) => limitAnswer(limit, found, now, spent)),
      }
    },
  } satisfies Partial<Handlers>
}

/** Members may ask about themselves. All others are refused alike, whether they exist or not. */
async function findOneself(
  sql: Sql,
  workspaceId: WorkspaceId,
  asked: NamedSubject,
  ownId: PersonId,
): Promise<FoundSubject> {
  const own = await findSubject(sql, workspaceId, { kind: 'person', name: ownId })
  if (asked.kind === 'person' && (asked.name === ownId || asked.name.toLowerCase() === own.label)) return own
  const message = `Members see their own spend limits only: \`subject=person:${own.label}\`. Ask an admin of the workspace.`
  throw new Failure('FORBIDDEN', message, { param: 'subject' })
}

function limitAnswer(
  counted: SubjectLimit,
  found: FoundSubject,
  now: number,
  spent: Spent,
): AnswerOf<'getSubjectLimits'>['limits'][number] {
  const { limit, setIn, counts } = counted
  const { kind, name } = limit.subject
  const { then, slowDown, setBy } = limit
  const isOfEach = name === undefined
  return {
    subject: isOfEach ? kind : subjectText({ kind, name: counts.label }),
    is_of_each: isOfEach,
    ...(counts !== found && { group: counts.label }),
    ...spendStateOf(counted, now, spent),
    ...(then !== undefined && { then }),
    ...(slowDown !== undefined && { slow_down: slowDown }),
    set_in: setIn,
    ...(setBy !== undefined && { set_by: setBy }),
  }
}
