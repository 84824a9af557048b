--- Windows WSAPoll: the same as poll under another name, so it uses poll's code.

return require "framewire.poller.poll"
