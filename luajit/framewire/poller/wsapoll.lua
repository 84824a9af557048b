--- Windows WSAPoll: the same as poll under another name, so it uses poll's code. Not tested.

return require "framewire.poller.poll"
