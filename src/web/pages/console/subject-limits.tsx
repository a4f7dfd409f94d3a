/** @jsxImportSource preact */
// The spend limits of one person or group in one place: those of the workspace and of each of its projects, with how much of
// each is used; and the groups of a workspace, which limits name.

import type { ConsoleData } from '../../page-data.ts'
import { type AnswerOf, callApi, type ItemOf } from '../api.ts'
import { Facts } from '../components.tsx'
import { useQuery } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { Card, DetailHead, emptyState, QueryView, Section } from './components.tsx'
import { useWorkspaces } from './context.tsx'
import { subjectLimit } from './figures.ts'
import { SpendLimitList } from './limits.tsx'
import { useConsolePath, useTitle } from './navigation.ts'

type Group = ItemOf<'listGroups'>

interface SubjectData {
  readonly state: AnswerOf<'getSubjectLimits'>
  /** undefined = it is a person. */
  readonly group: Group | undefined
}

async function readSubject(id: string, workspaceId: string): Promise<SubjectData> {
  const isGroup = id.startsWith('grp_')
  const [state, group] = await Promise.all([
    callApi('getSubjectLimits', { id: workspaceId, query: { subject: `${isGroup ? 'group' : 'person'}:${id}` } }),
    isGroup ? callApi('getGroup', { id }) : undefined,
  ])
  return { state, group }
}

/** `subject`: `per_…` or `grp_…`. */
export function SubjectView({ subject: id }: ConsoleData) {
  const { current } = useWorkspaces()
  const query = useQuery(current && `limits of ${id}`, () => readSubject(id, current?.id ?? ''))
  return (
    <QueryView what="the limits" query={query}>
      {(data) => <SubjectLimits {...data} />}
    </QueryView>
  )
}

function SubjectLimits({ state: { subject, role, groups, limits }, group }: SubjectData) {
  const to = useConsolePath()
  const title = subject.slice(subject.indexOf(':') + 1)
  useTitle(title)
  const own = limits.filter((limit) => limit.group === undefined)
  const throughGroups = limits.filter((limit) => limit.group !== undefined)
  const names = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name).join(', ') || 'none'
  return (
    <>
      <DetailHead trail={[['People', to('people')]]} title={title} />
      <Facts
        facts={
          group
            ? [['Members', names(group.members)]]
            : [
                ['Role', role ?? 'none'],
                ['Groups', names(groups)],
              ]
        }
      />
      <Card title="Spend limits">
        <SpendLimitList limits={own.map(subjectLimit)} />
        <p class="hint">
          {group
            ? 'What its people and keys spend is counted together.'
            : 'What all keys and signed-in devices of the person spend is counted together.'}
        </p>
      </Card>
      {!group && (
        <Card title="Limits of their groups">
          <SpendLimitList limits={throughGroups.map(subjectLimit)} />
        </Card>
      )}
    </>
  )
}

const groupColumns: readonly Column<Group>[] = [
  { label: 'Group', show: ({ name }) => <span class="row-name">{name}</span> },
  { label: 'Members', show: ({ members }) => members.map(({ name }) => name).join(', ') || 'none' },
]

export function GroupList({ groups }: { readonly groups: readonly Group[] }) {
  const to = useConsolePath()
  return (
    <Section title="Groups">
      <DataTable
        caption="Groups"
        columns={groupColumns}
        rows={groups}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => to(`people/${id}`)}
        empty={emptyState('No groups yet', 'Create one: tollgate groups create')}
      />
    </Section>
  )
}
