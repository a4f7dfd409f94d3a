/** @jsxImportSource preact */
// Batches: the list with progress and cost so far, and one batch. Pages with a batch that has not ended reload by themselves.

import type { StatusLevel } from '../../../api/route-state.ts'
import { countOf, exactCount } from '../../catalog/format.ts'
import { batchesListed } from '../../first-calls.ts'
import type { ConsoleData, WorkspacesData } from '../../page-data.ts'
import { callApi, type ItemOf, withQuery } from '../api.ts'
import { Amount, Facts, Path, ProgressBar, Status } from '../components.tsx'
import { useApi, useList, useTimeout } from '../hooks.ts'
import { amountColumn, type Column, DataTable } from '../table.tsx'
import { Actions, Card, DetailHead, emptyState, ListView, NameOf, QueryView, Section, Tiles } from './components.tsx'
import { Ago, Moment, useMay } from './context.tsx'
import { useConsolePath } from './navigation.ts'
import { FormDialog, useOverlay } from './overlay.tsx'

type Batch = ItemOf<'listBatches'>

const pollMs = 3_000

const levels: Readonly<Record<Batch['status'], StatusLevel>> = {
  ...({ in_progress: 'ok', finalizing: 'ok', completed: 'ok', failed: 'error' } as const),
  ...({ cancelling: 'warning', cancelled: 'off', expired: 'warning' } as const),
}

const waits = {
  balance: 'waits for the balance',
  limit: 'waits for a limit',
  provider: 'waits for its provider',
} as const

function BatchStatus({ status, waits_for: waitsFor }: Batch) {
  if (waitsFor !== null) return <Status level="warning" text={waits[waitsFor]} />
  return <Status level={levels[status]} text={status.replace('_', ' ')} />
}

const doneOf = ({ succeeded, errored, cancelled, expired }: Batch) => succeeded + errored + cancelled + expired

function Progress({ batch }: { readonly batch: Batch }) {
  if (batch.total === 0) return <>nothing was run</>
  return (
    <>
      <ProgressBar share={doneOf(batch) / batch.total} name={`Progress of ${batch.id}`} />
      <small class="note">{`${exactCount(doneOf(batch))} of ${exactCount(batch.total)}`}</small>
    </>
  )
}

/** Of its lines. It is kept for a month at most. */
const RequestsLink = ({ id }: Pick<Batch, 'id'>) => (
  <a href={withQuery('/console/requests', { range: '30d', batch: id })}>In the request log</a>
)

export function BatchesView({ workspaceId, hasBatches }: WorkspacesData) {
  const list = useList('listBatches', { query: { workspace_id: workspaceId as `ws_${string}`, limit: batchesListed } })
  const isRunning = list.items.some(({ ended_at }) => ended_at === null)
  useTimeout(list.reload, isRunning && !list.isLoading ? pollMs : undefined)
  const to = useConsolePath()
  const columns: readonly Column<Batch>[] = [
    {
      label: 'Batch',
      show: ({ id }) => `…${id.slice(-6)}`,
      note: ({ endpoint }) => endpoint,
    },
    { label: 'Status', show: (batch) => <BatchStatus {...batch} /> },
    { label: 'Progress', show: (batch) => <Progress batch={batch} /> },
    { label: 'Failed', isNumber: true, show: ({ errored }) => exactCount(errored) },
    amountColumn('Cost', ({ cost }) => cost),
    { label: 'Created', show: ({ created_at }) => <Ago at={created_at} /> },
    {
      label: 'Actions',
      show: (batch) => <BatchActions batch={batch} onDone={list.reload} />,
    },
  ]
  return (
    <ListView
      what="batches"
      list={list}
      caption="Batches, newest first"
      columns={columns}
      hrefOf={({ id }) => to(`batches/${id}`)}
      empty={emptyState(
        hasBatches ? 'No batches' : 'Batches are switched off',
        <p class="muted">
          A batch is a file of requests that are answered in the background, created with an API key:{' '}
          <a href="/docs/reference/batches">Batches</a>.{' '}
          {!hasBatches && (
            <>
              The operator switches them on with <code>batches.enabled</code>.
            </>
          )}
        </p>,
      )}
    />
  )
}

function BatchActions({ batch, onDone }: { readonly batch: Batch; readonly onDone: () => void }) {
  const { open } = useOverlay()
  const may = useMay()
  const { id, workspace_id: workspaceId, ended_at: endedAt, cancelled_at: cancelledAt } = batch
  const cancel = () =>
    open(
      <FormDialog
        title="Cancel this batch?"
        intro="Lines that run are finished and charged. The others are not run."
        label="Cancel batch"
        cancelLabel="Keep it running"
        isDanger
        initial={{}}
        rows={[]}
        send={() => callApi('cancelBatch', { id })}
        onDone={onDone}
      />,
    )
  return (
    <span class="row">
      {may('exportBatch', workspaceId) && doneOf(batch) > 0 && (
        <a class="button quiet small" href={`/api/batches/${id}/results`} aria-label={`Download results of ${id}`}>
          Download
        </a>
      )}
      {may('cancelBatch', workspaceId) && endedAt === null && cancelledAt === null && (
        <Actions actions={[{ label: 'Cancel', name: `Cancel ${id}`, look: 'danger', run: cancel }]} />
      )}
    </span>
  )
}

export function BatchView({ subject: id }: ConsoleData) {
  const query = useApi('getBatch', { id }, { keepPrevious: true })
  const isRunning = query.value?.ended_at === null
  useTimeout(query.reload, isRunning && !query.isLoading ? pollMs : undefined)
  return (
    <>
      <DetailHead
        trail={[['Batches', '/console/batches']]}
        title={id}
        action={query.value && <BatchActions batch={query.value} onDone={query.reload} />}
      />
      <QueryView what="the batch" query={query}>
        {(batch) => <BatchDetails batch={batch} />}
      </QueryView>
    </>
  )
}

function BatchDetails({ batch }: { readonly batch: Batch }) {
  const { id, total, succeeded, errored, cancelled, expired, cost, estimate, errors } = batch
  const notRun = cancelled + expired
  return (
    <>
      <Tiles
        tiles={[
          { label: 'Status', value: <BatchStatus {...batch} />, note: <Progress batch={batch} /> },
          {
            label: 'Lines',
            value: exactCount(total),
            note: [`${exactCount(succeeded)} with an answer`, notRun > 0 && `${exactCount(notRun)} not run`]
              .filter(Boolean)
              .join(', '),
          },
          { label: 'Failed', value: exactCount(errored), note: 'they cost nothing' },
          {
            label: batch.ended_at === null ? 'Cost so far' : 'Cost',
            value: <Amount usd={cost} />,
            note: (
              <>
                <Amount usd={estimate} /> {batch.provider === null ? 'expected' : 'held at first'}
              </>
            ),
          },
        ]}
      />
      <Card title="Details">
        <Facts
          facts={[
            ['Requests', <RequestsLink key="requests" id={id} />],
            [
              'Runs',
              batch.provider === null
                ? 'line by line, at ordinary prices'
                : `in batches of ${batch.provider}, at batch prices`,
            ],
            ['Endpoint', <Path key="endpoint" path={batch.endpoint} />],
            ['Key', <NameOf key="key" kind="Key" id={batch.key_id} />],
            ['Project', <NameOf key="project" kind="Project" id={batch.project_id} />],
            ['Input', countOf(batch.input_tokens, 'token')],
            ['Output', countOf(batch.output_tokens, 'token')],
            ['Created', <Moment key="created" at={batch.created_at} />],
            batch.ended_at === null
              ? ['Expires', <Moment key="expires" at={batch.expires_at} />]
              : ['Ended', <Moment key="ended" at={batch.ended_at} />],
            ...(batch.erase_at === null
              ? []
              : [['Results until', <Moment key="erased" at={batch.erase_at} />] as const]),
            ...Object.entries(batch.metadata ?? {}),
          ]}
        />
      </Card>
      {errors !== null && (
        <Section title="What is wrong">
          <DataTable
            caption="Errors of lines"
            columns={errorColumns}
            rows={errors}
            keyOf={({ line, code, param }) => `${line} ${code} ${param}`}
          />
        </Section>
      )}
    </>
  )
}

const errorColumns: readonly Column<NonNullable<Batch['errors']>[number]>[] = [
  { label: 'Line', show: ({ line }) => (line === null ? 'all' : exactCount(line)) },
  { label: 'Error', show: ({ message }) => message },
  { label: 'Field', show: ({ param }) => param ?? '–' },
]
