/** @jsxImportSource preact */
// The spend limits of one person or group in one place: those of the workspace and of each of its projects, with how much of
// each is used; and the groups of a workspace, which limits name.

import type { ConsoleData } from '../../page-data.ts'
import { callForAll, type ItemOf } from '../api.ts'
import { Facts } from '../components.tsx'
import { useQuery } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { Card, DetailHead, emptyState, QueryView, Section } from './components.tsx'
import { useWorkspaces } from './context.tsx'
import { type LimitHolder, limitsOfSubjects } from './figures.ts'
import { SpendLimitList } from './limits.tsx'
import { useConsolePath, useTitle } from './navigation.ts'
import { readProjectsOf } from './workspace-data.ts'

type Member = ItemOf<'listMembers'>
type Group = ItemOf<'listGroups'>

interface SubjectData {
  readonly member: Member | undefined
  /** The group itself, or those of the person. */
  readonly groups: readonly Group[]
  readonly holders: readonly LimitHolder[]
}

async function readSubject(id: string, workspaceId: string): Promise<SubjectData> {
  const [members, all, { workspaces, projects }] = await Promise.all([
    callForAll('listMembers', { query: { workspace_id: workspaceId } }),
    callForAll('listGroups', { id: workspaceId }),
    readProjectsOf(workspaceId),
  ])
  return {
    member: members.find((each) => each.person_id === id),
    groups: all.filter((group) => group.id === id || group.members.some((member) => member.id === id)),
    holders: [
      ...workspaces.map(({ name, limits, spend }) => ({ who: `workspace ${name}`, limits, spend })),
      ...projects.map(({ name, limits, spend }) => ({ who: `project ${name}`, limits, spend })),
    ],
  }
}

/** `subject`: `per_…` or `grp_…`. */
export function SubjectView({ subject: id }: ConsoleData) {
  const { current } = useWorkspaces()
  const query = useQuery(current && `limits of ${id}`, () => readSubject(id, current?.id ?? ''))
  return (
    <QueryView what="the limits" query={query}>
      {(data) => <SubjectLimits id={id} {...data} />}
    </QueryView>
  )
}

function SubjectLimits({ id, member, groups, holders }: SubjectData & { readonly id: string }) {
  const to = useConsolePath()
  const group = groups.find((each) => each.id === id)
  const title = group?.name ?? member?.email ?? id
  useTitle(title)
  const own = limitsOfSubjects(holders, group ? [`group:${group.name}`] : ['person', `person:${member?.email}`])
  const throughGroups = group
    ? []
    : limitsOfSubjects(
        holders,
        groups.map(({ name }) => `group:${name}`),
      )
  const names = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name).join(', ') || 'none'
  return (
    <>
      <DetailHead trail={[['People', to('people')]]} title={title} />
      {!group && !member && <p>Nobody and no group with this id is in this workspace.</p>}
      <Facts
        facts={
          group
            ? [['Members', names(group.members)]]
            : [
                ['Role', member?.role ?? 'none'],
                ['Groups', names(groups)],
              ]
        }
      />
      <Card title="Spend limits">
        <SpendLimitList limits={own} />
        <p class="hint">
          {group
            ? 'What its people and keys spend is counted together.'
            : 'What all keys and signed-in devices of the person spend is counted together. A limit of each person shows no amounts here.'}
        </p>
      </Card>
      {!group && (
        <Card title="Limits of their groups">
          <SpendLimitList limits={throughGroups} />
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
