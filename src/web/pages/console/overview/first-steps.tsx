/** @jsxImportSource preact */
// What a newcomer does first, with what is done already. It goes away by itself when all of it is done.

import { useEffect } from 'preact/hooks'
import { together } from '../manage/call-all.ts'
import { useLoad } from '../manage/use-load.ts'
import type { RequestItem, WalletAnswer } from '../parts/api-answers.ts'
import { callApi, withQuery } from '../parts/call-api.ts'
import type { ListAnswer } from '../parts/use-resource.ts'

export interface FirstStepsProps {
  readonly workspaceId: string
  /** Another moment: what is missing is asked for again. */
  readonly now: number
}

interface Step {
  readonly isDone: boolean
  readonly label: string
  readonly how: string
  readonly href: string
}

type Answers = [
  ListAnswer<{ readonly status: string }>,
  WalletAnswer,
  ListAnswer<RequestItem>,
  ListAnswer<{ readonly origin: string }>,
]

export function FirstSteps({ workspaceId, now }: FirstStepsProps) {
  const { value, again } = useLoad(workspaceId, () => readAnswers(workspaceId))
  const steps = value && stepsOf(value)
  const isAllDone = steps?.every(({ isDone }) => isDone) === true
  useEffect(() => {
    if (steps && !isAllDone) again()
  }, [now])
  if (!steps || isAllDone) return null
  const done = steps.filter(({ isDone }) => isDone).length
  return (
    <section class="card" aria-labelledby="first-steps">
      <h2 id="first-steps">
        First steps{' '}
        <small>
          {done} of {steps.length} done
        </small>
      </h2>
      <ol class="steps">
        {steps.map(({ isDone, label, how, href }) => (
          <li key={label} class={isDone ? 'done-step' : undefined}>
            <span aria-hidden="true" class="step-mark">
              {isDone ? '✓' : '○'}
            </span>
            <span>
              {isDone ? label : <a href={href}>{label}</a>}
              <span class="visually-hidden">{isDone ? ': done' : ': to do'}</span>
              {!isDone && <small class="row-note">{how}</small>}
            </span>
          </li>
        ))}
      </ol>
    </section>
  )
}

function readAnswers(workspaceId: string) {
  return together<Answers>(
    callApi(withQuery('/api/keys', { workspace_id: workspaceId, limit: '200' })),
    callApi(`/api/workspaces/${workspaceId}/wallet`),
    callApi(withQuery('/api/requests', { workspace_id: workspaceId, outcome: 'ok', limit: '1' })),
    callApi('/api/providers'),
  )
}

function stepsOf([keys, wallet, requests, providers]: Answers): readonly Step[] {
  return [
    {
      isDone: keys.data.some(({ status }) => status === 'active'),
      label: 'A key to call with',
      how: 'Make one; its secret is shown once.',
      href: '/console/keys',
    },
    {
      isDone: Number(wallet.available) > 0,
      label: 'Money in the wallet',
      how: 'Top up; the next call can be paid from it.',
      href: '/console/wallet',
    },
    {
      isDone: requests.data.length > 0,
      label: 'The first call',
      how: 'Run the line below, or try a model in the playground. The sandbox needs no provider.',
      href: '/console/playground',
    },
    {
      isDone: providers.data.some(({ origin }) => origin !== 'built_in'),
      label: 'A provider beside the sandbox',
      how: 'Set a provider’s usual variable and restart, declare one in tollgate.yaml, or bring a workspace’s own key.',
      href: '/console/providers',
    },
  ]
}
