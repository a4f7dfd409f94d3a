/** @jsxImportSource preact */
// The wallet: what is in it, what running requests hold, what is left; money put in or corrected by hand; and every transfer
// with the balance after it. Rows never change, so nothing here edits one.

import { useState } from 'preact/hooks'
import { LoadedView } from '../manage/loaded-view.tsx'
import { OfWorkspace } from '../manage/of-workspace.tsx'
import type { Correction, TopUp, Wallet } from '../manage/things.ts'
import { useLoad } from '../manage/use-load.ts'
import { FigureTile } from '../parts/figure-tile.tsx'
import { usdText } from '../parts/usd-text.ts'
import { CorrectionForm } from './correction-form.tsx'
import { readLedger } from './read-ledger.ts'
import { TopUpForm } from './top-up-form.tsx'
import { TransfersTable } from './transfers-table.tsx'

const lede = 'Prepaid, and exact to the nano-dollar. A call is paid from it before its answer ends.'

export function WalletPage() {
  return (
    <OfWorkspace title="Wallet" lede={lede}>
      {(workspaceId) => <WalletView workspaceId={workspaceId} />}
    </OfWorkspace>
  )
}

function WalletView({ workspaceId }: { readonly workspaceId: string }) {
  const loaded = useLoad(workspaceId, () => readLedger(workspaceId))
  const [done, setDone] = useState('')
  const onToppedUp = ({ amount, balance }: TopUp) => {
    setDone(`${usdText(amount)} added; the balance is ${usdText(balance)}.`)
    loaded.again()
  }
  const onCorrected = ({ direction, amount, balance }: Correction) => {
    setDone(`${usdText(amount)} ${direction === 'take' ? 'taken out' : 'added'}; the balance is ${usdText(balance)}.`)
    loaded.again()
  }
  return (
    <LoadedView what="the wallet" loaded={loaded}>
      {({ wallet, transfers }) => (
        <>
          <Purse wallet={wallet} />
          <TopUpForm workspaceId={workspaceId} onDone={onToppedUp} />
          <CorrectionForm workspaceId={workspaceId} onDone={onCorrected} />
          <p role="status" class="done">
            {done}
          </p>
          <TransfersTable
            key={transfers.data[0]?.id ?? ''}
            workspaceId={workspaceId}
            balance={wallet.balance}
            first={transfers}
          />
        </>
      )}
    </LoadedView>
  )
}

function Purse({ wallet: { balance, held, available } }: { readonly wallet: Wallet }) {
  const isEmpty = /^(-.*|0\.0*)$/.test(available)
  return (
    <>
      <dl class="tiles">
        <FigureTile label="Balance" value={usdText(balance)} note="all that is in the wallet" />
        <FigureTile label="Held" value={usdText(held)} note="set aside by running requests" />
        <FigureTile label="Available" value={usdText(available)} note="balance less held: what the next call may use" />
      </dl>
      {isEmpty && (
        <p class="warning">
          <strong>Nothing is left to spend.</strong> Calls that cost something are refused with 402 until it is topped
          up; the next call after that goes through.
        </p>
      )}
    </>
  )
}
